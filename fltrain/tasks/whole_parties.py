"""Means over all examples of a party, or over a random share of them: losses and gradients.

All is taken in eval mode. `at` has some parameters of a model, or all; the others are those of
`local`.
"""

import functools
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from .. import tree
from ..draws import uniform
from ..interface import Batch, Local, Task
from ..tree import Tree


def average_grads(
    task: Task, local: Local, at: Tree, batches: Iterable[Batch]
) -> tuple[Tree, Tensor]:
    """Return the mean gradient and the mean loss over the examples of all batches.

    Both are 0 where there is no example.
    """
    total = tree.zeros_like(at)
    losses: float | Tensor = 0.0
    n: int | Tensor = 0
    for batch in batches:
        loss_at = functools.partial(_evaluate_loss, task, local, batch)
        grads, loss, _ = task.differentiate(loss_at, at)
        size = _count_examples(batch)
        total = tree.map(lambda t, g, size=size: t + size * g, total, grads)
        losses = losses + size * loss
        n = n + size
    divisor = torch.as_tensor(n).clamp(min=1)
    mean = tree.map(lambda t: t / divisor, total)
    return mean, torch.as_tensor(losses / divisor)


def average_losses(task: Task, local: Local, at: Tree, batches: Iterable[Batch]) -> Tensor:
    """Return the mean loss over the examples of all batches, float64."""
    total: float | Tensor = 0.0
    n: int | Tensor = 0
    for batch in batches:
        loss, _ = _evaluate_loss(task, local, batch, at)
        size = _count_examples(batch)
        total = total + size * loss.detach().double()
        n = n + size
    return torch.as_tensor(total / n)


def _evaluate_loss(task: Task, local: Local, batch: Batch, at: Tree) -> tuple[Tensor, Tree]:
    out = task.forward(local.params | at, local.buffers, batch.x, train=False)
    return task.loss(out, batch), {}


def _count_examples(batch: Batch) -> int | Tensor:
    """Return how many examples of a batch are no padding."""
    return len(batch.y) if batch.mask is None else batch.mask.sum()


def draw_share(batches: Sequence[Batch], share: float | Tensor, key: int | Tensor) -> list[Batch]:
    """Return the batches with masks that leave a random share of all examples.

    Of n examples floor(share n) are left, at least one: those with the smallest words of their own.
    Padding has no place among them, so that the same examples are left of padded batches.
    """
    masks = []
    for batch in batches:
        is_true = torch.ones_like(batch.y, dtype=torch.bool)
        masks.append(is_true if batch.mask is None else batch.mask)
    is_example = torch.cat(masks)
    place = is_example.cumsum(0) - 1
    words = uniform(key, len(is_example), is_example.device)[place.clamp(min=0)]
    order = torch.where(is_example, words, 2.0).argsort(stable=True)
    rank = order.argsort()
    n_left = (is_example.sum() * share).floor().clamp(min=1)
    is_left = is_example & (rank < n_left)
    parts = torch.split(is_left, [len(mask) for mask in masks])
    pairs = zip(batches, parts, strict=True)
    return [batch._replace(mask=part) for batch, part in pairs]
