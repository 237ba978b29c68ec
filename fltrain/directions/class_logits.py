"""Directions whose loss reads the logits changed class by class, declared as data.

    loss(scale_k z_k + offset_k, y)

for the logit z_k of class k: margins, priors and restrictions of the softmax, which a party makes
of its own counts of classes. Scale and offset are constants of one local training, so an executor
that knows them can calculate all in one pass with the gradient: compiled code does. The model is
evaluated by its plain logits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from ..interface import Batch, Local, Step, Task

__all__ = ["ClassLogits", "LogitsDirection"]


class ClassLogits(NamedTuple):
    """What the logits are multiplied by, and what is added then.

    Attributes
    ----------
    scale, offset : Tensor
        [K], finite.

    Examples
    --------
    >>> ClassLogits(scale=torch.ones(3), offset=torch.tensor([0.0, -1.0, 0.0])).offset
    tensor([ 0., -1.,  0.])
    """

    scale: Tensor
    offset: Tensor


@dataclass(frozen=True)
class LogitsDirection:
    """An algorithm's `direction`: the gradient of the loss at logits that are changed by class.

    Parameters
    ----------
    change : callable
        change(local) -> ClassLogits, of what `begin` gave; it must not look at `local.params`.

    Examples
    --------
    >>> def change(local):
    ...     return ClassLogits(local.own["scale"], local.own["offset"])
    >>> direction = LogitsDirection(change)
    """

    change: Callable[[Local], ClassLogits]

    def __call__(self, task: Task, local: Local, batch: Batch) -> Step:
        """Return the step along the gradient."""
        scale, offset = self.change(local)

        def change_logits(logits: Tensor) -> Tensor:
            return logits * scale.to(logits.dtype) + offset.to(logits.dtype)

        return task.grad(local, batch, adjust=change_logits)
