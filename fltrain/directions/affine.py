"""Directions that are the gradient and an affine term of the weights, declared as data.

With g the gradient of the loss at the weights w, start the weights received this round, and the
terms weight, decay, pull, add, scale and after, which are constants of one local training, a step
of SGD is

    d = scale (weight g + decay w + pull (w - start) + add)
    v <- momentum v + d
    w <- w - lr (v + after)

(The executor adds its own weight decay to d; `decay` is for an algorithm that adds it itself.) A
parameter that does not move stays as it is, and so does what the optimiser holds of it.
Without terms this is FedAvg's step; FedProx has pull = mu; SCAFFOLD has after = c - c_i; FedCM has
weight = alpha and add = (1 - alpha) Delta; FedMOC scales each number; FedBABU's head does not move.
An executor that knows the terms can calculate all in one pass with the gradient: compiled code
does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from .. import tree
from ..interface import Batch, Local, Step, Task
from ..tree import Tree

__all__ = ["Affine", "AffineDirection", "Corrected", "add_terms"]


class Affine(NamedTuple):
    """The terms of a step, along scale (weight grad + decay w + pull (w - start) + add).

    They are constants of one local training. `after` comes behind the momentum.

    Attributes
    ----------
    pull : float or Tensor
        Weight of the pull back to the weights received: a number, or a tensor of no axis.
    add : Tree
        Like the parameters, added to the gradient before the momentum; {} for nothing.
    after : Tree
        Like the parameters, added behind the momentum; {} for nothing.
    scale : Tree
        What each number of the sum is multiplied by, like some of the parameters; the others, and
        all of them for {}, stay as they are.
    decay : float or Tensor
        Weight decay within the scale, of an algorithm that says `decay="algorithm"`; the executor
        adds none then.
    weight : float or Tensor
        What the gradient is multiplied by.
    moves : Tree
        Whether a parameter moves, a truth value of no axis by its name, as `Step.moves`; {} moves
        all.

    Examples
    --------
    >>> Affine(pull=0.1)
    Affine(pull=0.1, add={}, after={}, scale={}, decay=0.0, weight=1.0, moves={})
    """

    pull: float | Tensor = 0.0
    add: Tree = {}  # noqa: RUF012 - "nothing"; a tree is never changed in place
    after: Tree = {}  # noqa: RUF012
    scale: Tree = {}  # noqa: RUF012
    decay: float | Tensor = 0.0
    weight: float | Tensor = 1.0
    moves: Tree = {}  # noqa: RUF012


@dataclass(frozen=True)
class AffineDirection:
    """An algorithm's `direction`: the gradient and these terms, which may be none (FedAvg).

    An executor that calculates gradients by itself asks for the terms, once for each job; the
    others call it like any direction.

    Parameters
    ----------
    terms : callable
        terms(local) -> Affine, of what `begin` gave; it must not look at `local.params`.

    Examples
    --------
    FedProx's pull back to the weights received:

    >>> def terms(local):
    ...     return Affine(pull=local.hyper["mu"])
    >>> direction = AffineDirection(terms)
    """

    terms: Callable[[Local], Affine]

    def __call__(self, task: Task, local: Local, batch: Batch) -> Step:
        """Return the step along the loss's gradient with the terms."""
        return add_terms(self.terms(local), task.grad(local, batch), local)


# The name before it was also that of a direction without a correction.
Corrected = AffineDirection


def add_terms(terms: Affine, step: Step, local: Local) -> Step:
    """Return a step along a gradient with the terms.

    Parameters
    ----------
    terms : Affine
    step : Step
        Along the gradient alone.
    local : Local

    Returns
    -------
    Step

    Examples
    --------
    >>> params, start = {"w": torch.tensor([3.0])}, {"w": torch.tensor([1.0])}
    >>> local = Local(params, {}, start, {}, {}, {}, {}, hyper={}, key=7)
    >>> step = Step({"w": torch.tensor([0.5])}, torch.tensor(0.7), buffers={}, carry={})
    >>> add_terms(Affine(pull=0.1), step, local).grad
    {'w': tensor([0.7000])}
    """
    grad = _multiply(step.grad, terms.weight)
    grad = _add_decay(grad, terms.decay, local)
    pull = terms.pull
    # a pull of 0 is not calculated, so that 0 gives FedAvg's bits; a tensor may be one of many
    # jobs at once, and cannot be asked
    if isinstance(pull, Tensor) or pull != 0:
        grad = _add_pull(grad, pull, local)
    if terms.add:
        grad = tree.map(torch.add, grad, terms.add)
    if terms.scale:
        grad = grad | {name: grad[name] * by for name, by in terms.scale.items()}
    return step._replace(grad=grad, after=terms.after, moves=terms.moves)


def _multiply(grad: Tree, weight: float | Tensor) -> Tree:
    """Return weight * grad: 1 leaves it alone. A tensor may be one of many jobs at once."""
    if isinstance(weight, Tensor):
        return tree.map(lambda g: weight.to(g.dtype) * g, grad)
    if weight == 1:
        return grad
    return tree.map(lambda g: weight * g, grad)


def _add_decay(grad: Tree, decay: float | Tensor, local: Local) -> Tree:
    """Return grad + decay * params, as an executor adds it: 0 leaves the gradient alone.

    A tensor is one of many jobs at once.
    """
    if isinstance(decay, Tensor):
        return tree.map(lambda g, w: g + decay * w, grad, local.params)
    if decay == 0:
        return grad
    return tree.map(lambda g, w: torch.add(g, w, alpha=decay), grad, local.params)


def _add_pull(grad: Tree, pull: float | Tensor, local: Local) -> Tree:
    def pull_back(g: Tensor, w: Tensor, start: Tensor) -> Tensor:
        weight = pull.to(g.dtype) if isinstance(pull, Tensor) else pull
        return g + weight * (w - start)

    return tree.map(pull_back, grad, local.params, local.start)
