"""Packed studies in the place of folders, and `fltrain pack`."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from ..command import AdvisingCommand
from ..terminal import say

_HELP = (
    "Write a study as one small file, NAME.json.xz, without splits and tensors: the plan, and of "
    "each finished run configuration, environment, metrics with the digests of all its states, "
    "times and claims; no paths of data and no names of machines. table, figure, report and verify "
    "take it as they take a folder, and fltrain study NAME.json.xz --out FOLDER goes on with it "
    "(docs/studies.md)."
)


def pack_command() -> click.Command:
    return AdvisingCommand(
        "pack",
        callback=pack,
        help=_HELP,
        params=[
            click.Argument(["study"], type=click.Path()),
            click.Option(["-o", "--out"], type=click.Path(), help="NAME.json.xz.  [STUDY.json.xz]"),
        ],
    )


def pack(study: str, out: str | None) -> None:
    from fltrain.studies.packing.packed_file import PACKED
    from fltrain.studies.packing.study_packing import pack_study

    place = pack_study(study, out or f"{Path(study)}{PACKED}")
    say(f"{place}: {place.stat().st_size:,} bytes")


@contextlib.contextmanager
def open_packed(paths: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield paths with packed studies unpacked into temporary folders."""
    from fltrain.studies.packing.study_packing import open_study

    with contextlib.ExitStack() as opened:
        yield tuple(str(opened.enter_context(open_study(path))) for path in paths)
