"""Directions of a rule that each stage learns by on its own, declared as data.

No gradient passes from one stage into the one before. The class of an example says how its outputs
at each hidden stage are weighed, and the last stage learns by its own error (FedNACA). An executor
that knows the weights can calculate all in one pass: compiled code does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ..draws import fold
from ..interface import Batch, Local, Out, Step, Task
from ..tree import Tree

__all__ = ["LocalRule", "LocalRuleDirection"]


class LocalRule(NamedTuple):
    """What the stages learn by, in place of the loss of the task.

    A hidden stage with outputs h follows the gradient of the sum of pull[y] h over the examples of
    the batch, y the class. The last stage follows that of the mean squared error of s(logits) to
    the one-hot class, s the sigmoid: the mean over examples and classes, and the loss reported.

    Attributes
    ----------
    pulls : sequence of Tensor
        One for each hidden stage: K rows of the shape of its output, constants of one local
        training.

    Examples
    --------
    >>> LocalRule(pulls=[torch.ones(10, 8)]).pulls[0].shape
    torch.Size([10, 8])
    """

    pulls: Sequence[Tensor]


@dataclass(frozen=True)
class LocalRuleDirection:
    """An algorithm's `direction`: what the stages learn by on their own.

    Parameters
    ----------
    rule : callable
        rule(local) -> LocalRule, of what `begin` gave; it must not look at `local.params`.

    Examples
    --------
    >>> def rule(local):
    ...     return LocalRule(pulls=[local.shared["hidden"]])
    >>> direction = LocalRuleDirection(rule)
    """

    rule: Callable[[Local], LocalRule]

    def __call__(self, task: Task, local: Local, batch: Batch) -> Step:
        """Take the gradient of all sums and the error, whose summands belong to one stage each.

        With the stages cut off from each other it is, at each stage, that of its own summand.
        """
        draws = fold(local.key, batch.step)
        rule = self.rule(local)

        def weigh_and_err(at: Tree) -> tuple[Tensor, tuple[Tensor, Tree]]:
            out = task.forward(at, local.buffers, batch.x, train=True, key=draws, detach=True)
            error = _output_error(out, batch)
            return error + _sum_pulls(rule, out, batch), (error.detach(), out.buffers)

        grads, _, (error, buffers) = task.differentiate(weigh_and_err, local.params)
        return Step(grads, error, buffers, local.carry)


def _output_error(out: Out, batch: Batch) -> Tensor:
    """Return the mean squared error of s(logits) to the one-hot class."""
    logits = out.logits
    target = torch.eye(logits.shape[1], dtype=logits.dtype, device=logits.device)[batch.y]
    each = (logits.sigmoid() - target).square().mean(1)
    if batch.mask is None:
        return each.mean()
    return (each * batch.mask).sum() / batch.mask.sum().clamp(min=1)


def _sum_pulls(rule: LocalRule, out: Out, batch: Batch) -> Tensor:
    """Return sum_b <pull[y_b], h_b> over all hidden stages; padding counts for nothing."""
    logits = out.logits
    counts = logits.new_ones(len(logits)) if batch.mask is None else batch.mask.to(logits.dtype)
    total = logits.new_zeros(())
    for pull, h in zip(rule.pulls, out.taps[:-1], strict=True):
        weighed = pull[batch.y] * h
        total = total + counts @ weighed.flatten(1).sum(1)
    return total
