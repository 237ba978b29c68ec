"""Which cells the compiled code can train."""

from typing import NamedTuple

from niidpart.errors import UsageError

from ...settings import Settings
from ...tasks.losses import Loss, SmoothedCrossEntropy, cross_entropy
from ...tasks.unlike_task import UnlikeTask
from ..jobs import Cell
from .build import Build, find_build, load_library
from .declared import READS, Direction
from .layers import LayerTable, tabulate_layers

_OPTIMIZERS = ("sgd", "adam", "adamw")  # of updates.h
_INSTEAD = "use --engine processes or looped"


class BuildSearch(NamedTuple):
    """What looking for compiled code came to: code that can be loaded, or why there is none."""

    build: Build | None
    reason: str = ""


def why_not_native(cell: Cell) -> str:
    """Return why compiled code cannot train a cell, in a clause; "" if it can, once there is some.

    It is the reason of the refusal that asking for it would get, without what to do instead.
    """
    try:
        require_native(cell)
        tabulate_cell(cell)
    except UsageError as refusal:
        return _give_reason(str(refusal))
    return ""


def look_for_build() -> BuildSearch:
    """Return the compiled code for this processor, or why there is none, in a clause."""
    try:
        build = find_build()
        load_library(build.file)
    except UsageError as refusal:
        return BuildSearch(None, _give_reason(str(refusal)))
    return BuildSearch(build)


def tabulate_cell(cell: Cell) -> LayerTable:
    """Return the table of a cell's model; UsageError where there is no kernel for it."""
    data = cell.data
    largest = max(data.train.size(party) for party in range(data.n_parties))
    batch = min(cell.settings.batch_size, largest)
    read = READS[type(require_declared_direction(cell))]
    return tabulate_layers(cell.task.module, data.shape, batch, read)


def _give_reason(refusal: str) -> str:
    """Return the first clause of a refusal, which says why; the others say what to do."""
    return refusal.partition("; ")[0]


def require_native(cell: Cell) -> None:
    """Raise a UsageError where compiled code cannot train a cell, whatever its model."""
    require_declared_direction(cell)
    device = cell.data.train.y.device.type
    if device != "cpu":
        raise UsageError(
            f"engine native is for the CPU, and the device is {device}; "
            "use --engine stacked or looped, or --device cpu"
        )
    if isinstance(cell.task, UnlikeTask):
        raise UsageError(
            f"engine native trains one model, and parties have {len(cell.task.parts)} of different "
            f"shapes; {_INSTEAD}"
        )
    if not _is_cross_entropy(cell.task.loss):
        raise UsageError(
            "engine native knows cross entropy alone, and the task has another loss; " + _INSTEAD
        )
    _require_known_optimizer(cell.settings)
    for name in ("bf16", "compile"):
        if getattr(cell.settings, name):
            raise UsageError(
                f"engine native calculates by itself, in float32, so --{name} would do nothing; "
                f"leave it out, or {_INSTEAD}"
            )


def _is_cross_entropy(loss: Loss) -> bool:
    """Return whether a loss is cross entropy, with smoothed labels or without."""
    return loss is cross_entropy or isinstance(loss, SmoothedCrossEntropy)


def _require_known_optimizer(settings: Settings) -> None:
    """Raise UsageError for an optimiser that the compiled code has no steps of."""
    if settings.optimizer not in _OPTIMIZERS:
        raise UsageError(
            f"engine native steps by {', '.join(_OPTIMIZERS)}, and --optimizer "
            f"{settings.optimizer} was asked for; {_INSTEAD}"
        )


def require_declared_direction(cell: Cell) -> Direction:
    """Return the algorithm's direction; UsageError where it is not declared as data."""
    direction = cell.algorithm.direction
    is_known = type(direction) in READS  # a subclass may do something else
    if not isinstance(direction, Direction) or not is_known:
        raise UsageError(
            "engine native takes algorithms whose steps are declared as data "
            "(fltrain.directions), and "
            f"{cell.algorithm.name}'s are not; {_INSTEAD}"
        )
    return direction
