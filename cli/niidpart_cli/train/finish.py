"""How a run ends on the command line."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..terminal import say
from .progress import format_round

if TYPE_CHECKING:
    from fltrain import Run


def report_run(done: "Run", as_json: bool) -> None:
    """Print what a run has come to, and where it lies."""
    if as_json:
        say(json.dumps(describe_end(done)))
        return
    assert done.folder is not None  # the command gives every run a folder
    n = len(done.history)
    rounds = f"{n} round{'s' if n > 1 else ''}"
    picture = done.folder / "curves.png"
    say(f"{done.algorithm.name}, {rounds}: {format_round(done.history[-1:])}")
    if done.stopped:
        say(f"{done.algorithm.name} {done.stopped}")
    say(f"metrics  {done.folder / 'metrics.jsonl'}")
    say(f"curves   {picture if picture.exists() else f'fltrain plot {done.folder}'}")
    say(f"run      {done.folder}")


def describe_end(done: "Run") -> dict[str, Any]:
    """Return what `--json` says of a run: its last metrics, its folder, whether it ended early."""
    last = done.history[-1] if done.history else {}
    stopped = asdict(done.stopped) if done.stopped else None
    return last | {"folder": str(done.folder), "stopped": stopped}


@contextlib.contextmanager
def explain_interrupt(out: str | Path) -> Iterator[None]:
    """Say on an interrupt how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"\nwhat was reached is kept; go on with: fltrain resume {out}", err=True)
        raise


def find_free_folder(wanted: str) -> Path:
    """Return a folder that is not there yet: `wanted`, else with -2, -3, ..."""
    path, n = Path(wanted), 1
    while path.exists():
        n += 1
        path = Path(f"{wanted}-{n}")
    return path
