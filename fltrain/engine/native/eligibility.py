"""Which cells the compiled step can train."""

from niidpart.errors import UsageError

from ...affine import Corrected
from ...tasks.model_task import cross_entropy
from ..jobs import Cell
from .build import find_compiler
from .layers import tabulate_layers

_INSTEAD = "use --engine processes or looped"


def can_train_natively(cell: Cell) -> bool:
    """Whether a cell could be trained by `Native` here: all that can be known without compiling."""
    try:
        require_native(cell)
        tabulate_layers(cell.task.module, cell.data.shape)
        find_compiler()
    except ValueError:
        return False
    return True


def require_native(cell: Cell) -> None:
    """ValueError where compiled code cannot train a cell, whatever its model."""
    settings = cell.settings
    require_affine_direction(cell)
    if (device := cell.data.train.y.device.type) != "cpu":
        raise UsageError(
            f"engine native is for the CPU, and the device is {device}; use --engine stacked or looped, or --device cpu"
        )
    if cell.task.loss is not cross_entropy:
        raise UsageError(
            f"engine native knows cross entropy alone, and the task has another loss; {_INSTEAD}"
        )
    for name in ("bf16", "compile"):
        if getattr(settings, name):
            raise UsageError(
                f"engine native calculates by itself, in float32, so --{name} would do nothing; leave it out, or {_INSTEAD}"
            )


def require_affine_direction(cell: Cell) -> Corrected:
    """ValueError where the algorithm's direction is not said as data."""
    direction = cell.algorithm.direction
    if not isinstance(direction, Corrected):
        raise UsageError(
            f"engine native takes algorithms whose steps are the gradient and affine terms (fltrain.affine), and {cell.algorithm.name}'s are not; "
            f"{_INSTEAD}"
        )
    return direction
