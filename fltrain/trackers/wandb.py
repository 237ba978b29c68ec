"""Weights & Biases."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any

from ._interface import Log, PlacedLog, TrackedRun, select_lists, select_numbers

__all__ = ["wandb"]


@contextmanager
def wandb(run: TrackedRun) -> Iterator[Log]:
    """A run of Weights & Biases, in the project fltrain or =PROJECT. Needs wandb.

    Its own variables hold: WANDB_MODE=offline, WANDB_DIR, WANDB_ENTITY. A run that is resumed goes
    on as the same run, and cells of a sweep are a group.
    """
    import wandb as library

    def log(round: int, metrics: Mapping[str, Any]) -> None:
        histograms = {
            name: library.Histogram(values) for name, values in select_lists(metrics).items()
        }
        session.log(select_numbers(metrics) | histograms, step=round)

    session = library.init(
        project=run.place or "fltrain",
        name=run.name,
        id=run.id,
        group=run.group or None,
        config=run.config,
        resume="allow",
        reinit="create_new",  # cells of a sweep are runs side by side
        settings=library.Settings(console="off"),  # the terminal is the progress line's
    )
    try:
        yield _say_place(log, session)
    except BaseException:
        session.finish(exit_code=1)
        raise
    session.finish()


def _say_place(log: Log, session: Any) -> PlacedLog:
    """Return the log with its place: its page, or offline the folder that is sent there later."""
    if session.url:
        return PlacedLog(log, place=str(session.url))
    folder = str(Path(session.dir).parent)  # where its files lie, and beside them its records
    return PlacedLog(log, place=folder, command=f"wandb sync {quote(folder)}")
