"""How jobs run: one after another, side by side, all at once; the order of examples; evaluation.

No algorithm is known here by name.
"""

from collections.abc import Sequence

from .execution import Execution
from .graph import Graphed
from .jobs import Cell, Executor, MakeExecutor
from .looped import Looped, OneThread
from .native import Native
from .processes import Processes, has_lost_workers
from .ranks import ALONE, Ranks
from .stacked import Stacked

EXECUTORS: dict[str, MakeExecutor] = {
    "looped": Looped,
    "processes": Processes,
    "native": Native,
    "stacked": Stacked,
    "graph": Graphed,
}


def create_executor(cells: Sequence[Cell], execution: Execution, ranks: Ranks = ALONE) -> Executor:
    """Return the executor that was chosen, made for these cells.

    Where a run that had workers is resumed without them, one thread does what they would, with the
    same bits. ranks: those that share the run.
    """
    if has_lost_workers(execution, ranks.size):
        return OneThread(cells, execution)
    return EXECUTORS[execution.engine](cells, execution)
