"""How jobs run: one after another, side by side, all at once; the order of examples; evaluation. No algorithm is known here by name."""

from collections.abc import Sequence

from .jobs import Cell, Executor, Make
from .looped import Looped, OneThread
from .native import Native
from .processes import Processes
from .ranks import current
from .stacked import Stacked

EXECUTORS: dict[str, Make] = {"looped": Looped, "processes": Processes, "native": Native, "stacked": Stacked}


def executor(cells: Sequence[Cell]) -> Executor:
    """The one that the cells' settings name, made for these cells."""
    engine = cells[0].settings.engine
    if engine == "processes" and current().size > 1:
        return OneThread(cells)  # a run that was started with workers goes on: the ranks are the workers
    return EXECUTORS[engine](cells)
