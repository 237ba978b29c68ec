"""What tables are made of: runs as they stand, with their values on the axes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

RunState = Literal["done", "unfinished", "failed"]

SEED_AXES = ("split_seed", "init_seed", "order_seed")
RUN_AXIS = "run"  # the folder, of runs and of cells
SPLIT_AXIS = "split"  # what a plan calls it, or how its digest begins
SETTING_AXIS = "setting"  # of runs that are no study: what tells them apart but for seeds
_NAMING_AXES = (RUN_AXIS, SETTING_AXIS)


@dataclass(frozen=True)
class RunRecord:
    """A run, or a cell of a study, as tables see it.

    Parameters
    ----------
    name : str
    where : mapping
        Its values on the axes.
    split : str
        The digest of its split.
    state : str
        "failed": it diverged, say. "unfinished": it has not ended, or not begun.
    history : sequence of mapping
        The numbers of each round; lists are empty ones.
    folder : Path or None
        None for a cell that has none.
    cause : str
        Of a failure.
    rounds_asked : int or None
        None where a folder of an earlier version does not say.
    """

    name: str
    where: Mapping[str, Any]
    split: str
    state: RunState = "done"
    history: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    folder: Path | None = None
    cause: str = ""
    rounds_asked: int | None = None

    @property
    def draw(self) -> tuple[str, ...]:
        """What chance decided: the split and the seeds. Runs of one draw are a pair."""
        seeds = [self.where.get(axis) for axis in SEED_AXES]
        return (self.split, *map(repr, seeds))

    def describe_draw(self) -> str:
        """Return its seeds in words; the split's digest where there are none."""
        seeds = [f"{axis}={self.where[axis]}" for axis in SEED_AXES if axis in self.where]
        return " ".join(seeds) or f"split {self.split[:12]}"


def list_axes(records: Sequence[RunRecord]) -> list[str]:
    """Return the axes of some runs."""
    axes: dict[str, None] = {}
    for record in records:
        axes |= dict.fromkeys(record.where)
    return list(axes)


def list_varied(records: Sequence[RunRecord]) -> list[str]:
    """Return the axes on which runs differ, but for seeds and for names."""
    varied = []
    for axis in list_axes(records):
        if axis in SEED_AXES or axis in _NAMING_AXES:
            continue
        if is_varied(axis, records):
            varied.append(axis)
    return varied


def is_varied(axis: str, records: Sequence[RunRecord]) -> bool:
    """Return whether runs differ on an axis."""
    values = {repr(record.where.get(axis)) for record in records}
    return len(values) > 1
