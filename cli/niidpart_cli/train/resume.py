"""`fltrain resume`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..command import AdvisingCommand
from ..options import declare_data_memory
from ..terminal import say
from .curves import declare_draw, is_drawn
from .finish import follow_training, report_run
from .loading import load_training
from .options import TRACK, declare_moved_data, declare_trust
from .progress import Bar
from .sweep import report_sweep

if TYPE_CHECKING:
    from fltrain import Run


def resume_command() -> click.Command:
    return AdvisingCommand(
        "resume",
        callback=resume,
        help="Go on with a run, or a whole sweep, that was stopped or killed. The end is the same, "
        "byte for byte, as if it had not been. With --rounds it gets more rounds, also where it "
        "was finished, and the end is that of a run started with so many.",
        params=[
            click.Argument(["run"], type=click.Path()),
            click.Option(
                ["--rounds"],
                type=int,
                help="Rounds of the whole run. Not where its learning rates depend on their number "
                "(--lr-schedule cosine, linear).  [those of the run]",
            ),
            declare_moved_data(),
            declare_data_memory("--data-memory"),
            click.Option(
                ["--workers"],
                type=int,
                help="Worker processes, or threads of native, from here on; the end is the same.  "
                "[those of the run]",
            ),
            click.Option(
                ["--keep"],
                help="Which checkpoints stay from here on: all, every:N or last.  [as in the run]",
            ),
            TRACK,
            declare_draw(),
            click.Option(
                ["--go-back"],
                is_flag=True,
                help="Where lines of the metrics are damaged, start from the newest checkpoint "
                "before them, and train the rounds after it again; what is there of them is "
                "dropped.",
            ),
            click.Option(
                ["--json", "as_json"], is_flag=True, help="Print the last round's metrics as JSON."
            ),
            declare_trust(),
        ],
    )


def resume(
    run: str,
    rounds: int | None,
    data_root: str | None,
    workers: int | None,
    keep: str | None,
    go_back: bool,
    track: tuple[str, ...],
    draw: bool,
    as_json: bool,
    trust: bool,
) -> None:
    from fltrain.runs.finding import require_run
    from fltrain.runs.sweep_folder import is_sweep, read_cells

    if not is_sweep(run):
        require_run(run)  # before torch is imported, which takes seconds
    load_training()
    import fltrain

    draw = draw or is_drawn(run)
    given: dict[str, Any] = {
        "rounds": rounds,
        "data_root": data_root,
        "trust": trust,
        "workers": workers,
        "keep": keep,
        "go_back": go_back,
        "track": track,
    }
    if is_sweep(run):
        with follow_training(run, draw, len(read_cells(run))) as progress:
            cells = fltrain.resume_sweep(run, progress=progress, **given)
        _say_if_finished(run, progress, cells)
        report_sweep(cells, Path(run), as_json)
        return
    with follow_training(run, draw) as progress:
        done = fltrain.resume(run, progress=progress, **given)
    _say_if_finished(run, progress, [done])
    report_run(done, as_json)


def _say_if_finished(run: str, progress: Bar, done: "Sequence[Run]") -> None:
    """Say where nothing was trained, since all rounds stood there before."""
    if progress.has_trained:
        return
    stopped = [one.stopped for one in done if one.stopped]
    said = f"{run} is finished already: "
    if stopped:
        said += f"it {stopped[0]}" if len(done) == 1 else f"{len(stopped)} of its runs ended early"
        said += "; to train on start a new run with another --stop-at, or without"
    else:
        said += "there was no round left to train"
        said += f"; fltrain resume {run} --rounds N gives it more"
    say(said, err=True)
