"""How jobs run: one after another, side by side, all at once; the order of examples; evaluation.

No algorithm is known here by name.
"""

from collections.abc import Sequence

from ..common import Execution
from .jobs import Cell, Executor, MakeExecutor
from .looped import Looped, OneThread
from .native import Native
from .processes import Processes, why_not_workers
from .ranks import current_ranks
from .stacked import Stacked

EXECUTORS: dict[str, MakeExecutor] = {
    "looped": Looped,
    "processes": Processes,
    "native": Native,
    "stacked": Stacked,
}


def create_executor(cells: Sequence[Cell], execution: Execution) -> Executor:
    """Return the executor that was chosen, made for these cells.

    Where a run was started with workers, and goes on where they cannot be had, one thread does what
    they would, with the same bits. (A new run that asks for workers is refused there.)
    """
    if execution.engine == "processes" and (current_ranks().size > 1 or why_not_workers()):
        return OneThread(cells, execution)
    return EXECUTORS[execution.engine](cells, execution)
