"""Directions along the Moreau envelope of the loss, declared as data.

A model theta takes steps of its own on each batch, and the weights w are drawn to it (pFedMe):

    theta <- theta - lr (grad f(theta) + decay theta + pull (theta - w)), `steps` times
    d = pull (w - theta)

theta is carried from batch to batch: `begin` puts it into `local.carry["theta"]`, `finish` finds it
there. An executor that knows the numbers can do these steps in one pass with the gradient: compiled
code does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from .. import tree
from ..interface import Batch, Local, Step, Task

__all__ = ["THETA", "Envelope", "EnvelopeDirection"]

THETA = "theta"  # of `Local.carry`


class Envelope(NamedTuple):
    """The numbers of an envelope, constants of one local training.

    Attributes
    ----------
    pull : float or Tensor
        Weight of the pull between theta and w: a number, or a tensor of no axis.
    lr : float or Tensor
        Learning rate of theta.
    steps : int
        Steps of theta on each batch.
    decay : float or Tensor
        Weight decay of theta.

    Examples
    --------
    >>> Envelope(pull=15.0, lr=0.09, steps=5)
    Envelope(pull=15.0, lr=0.09, steps=5, decay=0.0)
    """

    pull: float | Tensor
    lr: float | Tensor
    steps: int
    decay: float | Tensor = 0.0


@dataclass(frozen=True)
class EnvelopeDirection:
    """An algorithm's `direction`: theta steps on the batch, then the weights are drawn to it.

    Loss and buffers are those of theta as it comes to the batch, also where it takes no step.

    Parameters
    ----------
    envelope : callable
        envelope(local) -> Envelope, of what `begin` gave; it must not look at `local.params`.

    Examples
    --------
    >>> def envelope(local):
    ...     return Envelope(pull=local.hyper["lam"], lr=0.09, steps=5)
    >>> direction = EnvelopeDirection(envelope)
    """

    envelope: Callable[[Local], Envelope]

    def __call__(self, task: Task, local: Local, batch: Batch) -> Step:
        """Return the step of the weights, with theta as it is carried on."""
        pull, lr, steps, decay = self.envelope(local)
        theta = local.carry[THETA]

        def envelope_gradient(g: Tensor, t: Tensor, w: Tensor) -> Tensor:
            full: Tensor = g + decay * t + pull * (t - w)
            return full

        step = task.grad(local, batch, params=theta)
        for k in range(steps):
            grad = step.grad if k == 0 else task.grad(local, batch, params=theta).grad
            full = tree.map(envelope_gradient, grad, theta, local.params)
            theta = tree.map(lambda t, g: t - lr * g, theta, full)
        drawn = tree.map(lambda w, t: pull * (w - t), local.params, theta)
        return step._replace(grad=drawn, carry=local.carry | {THETA: theta})
