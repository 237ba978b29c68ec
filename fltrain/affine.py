"""Directions that are the gradient and an affine term of the weights, said as data: what executors can fuse into one pass."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from . import tree
from .interface import Batch, Local, Step, Task
from .tree import Tree


class Affine(NamedTuple):
    """The step is along grad + pull (w - start) + add, and `after` is added behind the momentum. Constants of one local training.

    pull: a number, or a tensor of no axis; add, after: trees like the parameters, {} for nothing. Weight decay is the executor's.
    """

    pull: float | Tensor = 0.0
    add: Tree = {}  # noqa: RUF012 - "nothing"; a tree is never changed in place
    after: Tree = {}  # noqa: RUF012


@dataclass(frozen=True)
class Corrected:
    """An algorithm's `direction`, made from its terms alone. terms(local) -> Affine, of what `begin` gave; it must not look at local.params.

    An executor that calculates gradients by itself asks for the terms, once for each job; the others call it like any direction.
    """

    terms: Callable[[Local], Affine]

    def __call__(self, task: Task, local: Local, batch: Batch) -> Step:
        """The loss's gradient with the terms."""
        step, (pull, add, after) = task.grad(local, batch), self.terms(local)
        grad = step.grad
        if isinstance(pull, Tensor) or pull:
            grad = tree.map(
                lambda g, w, w0: g + _like(pull, g) * (w - w0), grad, local.params, local.start
            )
        if add:
            grad = tree.map(torch.add, grad, add)
        return step._replace(grad=grad, after=after)


def _like(number: float | Tensor, leaf: Tensor) -> float | Tensor:
    """In the leaf's type, so that the product is."""
    return number.to(leaf.dtype) if isinstance(number, Tensor) else number
