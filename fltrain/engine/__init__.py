"""How jobs run: one after another, side by side, all at once; the order of examples; evaluation. No algorithm is known here by name."""

from collections.abc import Sequence

from .jobs import Cell, Executor, Make
from .looped import Looped

EXECUTORS: dict[str, Make] = {"looped": Looped}


def executor(cells: Sequence[Cell]) -> Executor:
    """The one that the cells' settings name, made for these cells."""
    return EXECUTORS[cells[0].settings.engine](cells)
