"""How jobs run: one after another, side by side, all at once; the order of examples; evaluation. No algorithm is known here by name."""

from collections.abc import Sequence

from .jobs import Cell, Executor, Make
from .looped import Looped, OneThread
from .native import Native
from .processes import Processes, why_not_workers
from .ranks import current_ranks
from .stacked import Stacked

EXECUTORS: dict[str, Make] = {
    "looped": Looped,
    "processes": Processes,
    "native": Native,
    "stacked": Stacked,
}


def executor(cells: Sequence[Cell]) -> Executor:
    """The one that the cells' settings name, made for these cells.

    Where a run was started with workers, and it goes on where they cannot be had, one thread does what they would, with the same bits. (Who asks for
    workers anew is refused by `processes.require_worker_processes`.)
    """
    engine = cells[0].settings.engine
    if engine == "processes" and (
        current_ranks().size > 1 or why_not_workers()
    ):  # the ranks are the workers, or there is none but this process
        return OneThread(cells)
    return EXECUTORS[engine](cells)
