"""A model from which each party is good after a step of its own.

State: models and buffers [1, ...]; nothing at the server or the parties.
"""

from dataclasses import replace
from typing import Annotated, Literal

import torch
from torch import Tensor

from .. import tree
from ..counting import ceil_div
from ..interface import Above, Algorithm, AtLeast, Batch, Local, Step, Task
from ..tree import Tree
from ._weights import PLANS, Weights
from .fedavg import fedavg

__all__ = ["per_fedavg"]

FAMILY = "personal"

BASE = fedavg()


def per_fedavg(
    inner_lr: Annotated[
        float, "Learning rate of the step that a party will adapt by; 0 is FedAvg.", AtLeast(0)
    ] = 0.01,
    second_order: Annotated[
        Literal["ignored", "hessian-free"],
        "The derivative of that step is taken for 1 (first order), or by a difference of two "
        "gradients.",
    ] = "ignored",
    delta: Annotated[
        float, "How far the two gradients of hessian-free are taken from the weights.", Above(0)
    ] = 1e-3,
    batches: Annotated[
        Literal["apart", "same"],
        "The gradients of a step are of parts of its batch, or all of the whole batch.",
    ] = "apart",
    tuning_epochs: Annotated[
        int, "Epochs in which each party adapts the last model on its own rows.", AtLeast(1)
    ] = 1,
    weights: Weights = "examples",
) -> Algorithm:
    """Per-FedAvg. Fallah, Mokhtari, Ozdaglar, NeurIPS 2020: FedAvg on the loss after one step of
    adaptation, f_i(w - inner_lr grad f_i(w)).

    A step has batches D, D' and, hessian-free, D'': with u = w - inner_lr grad f(w; D) it goes
    along g = grad f(u; D'), or along g - inner_lr (grad f(w + delta g; D'') - grad f(w - delta g;
    D'')) / (2 delta). They are the parts of one batch, cut in two or three, as others' codes do, so
    that a `batch_size` counts them together; one of fewer than two examples a part is all of its
    parts, and so is any with `batches` "same", as for a gradient of all examples.
    The outer rate is that of the run, with its momentum and weight decay; the inner step has
    neither. Loss reported is that of u on D'. Statistics of batch norm move with the passes at w
    and at u.

    The difference of two gradients is divided by 2 delta, and their rounding with it: engines,
    which add in other orders, differ by some eps / delta, also after one round. In float32 that is
    1e-7 / 1e-3, and a thousand times as much where batch norm takes its statistics from parts of
    two examples.

    Codes weigh parties alike (`weights` "uniform"); by examples the comparison with FedAvg is one
    of the loss alone. It is measured at home, after adapting: finetuned_party_test_accuracy of
    the last round, by `tuning_epochs` epochs at the run's learning rate, where the codes
    take a step or several at the inner one.

    Examples
    --------
    >>> per_fedavg(second_order="hessian-free", tuning_epochs=2).settings
    {'finetune': 2}
    """
    direction = DIRECTIONS[second_order, batches]
    return replace(
        BASE,
        name="per-fedavg",
        hyper={"inner_lr": inner_lr, "delta": delta},
        plan=PLANS[weights],
        direction=direction if inner_lr else BASE.direction,
        settings={"finetune": tuning_epochs},
    )


def follow_first_order(task: Task, local: Local, batch: Batch) -> Step:
    """Return the gradient behind the inner step, on parts of the batch."""
    return _differentiate_adapted(task, local, *_cut(batch, 2))


def follow_first_order_of_whole(task: Task, local: Local, batch: Batch) -> Step:
    return _differentiate_adapted(task, local, *_repeat(batch, 2))


def follow_difference(task: Task, local: Local, batch: Batch) -> Step:
    """Return that gradient times 1 - inner_lr x the Hessian at w, by a difference."""
    return _correct_by_difference(task, local, *_cut(batch, 3))


def follow_difference_of_whole(task: Task, local: Local, batch: Batch) -> Step:
    return _correct_by_difference(task, local, *_repeat(batch, 3))


DIRECTIONS = {
    ("ignored", "apart"): follow_first_order,
    ("ignored", "same"): follow_first_order_of_whole,
    ("hessian-free", "apart"): follow_difference,
    ("hessian-free", "same"): follow_difference_of_whole,
}


def _differentiate_adapted(task: Task, local: Local, first: Batch, second: Batch) -> Step:
    """Return the step along the gradient of the second batch behind a step along the first's."""
    inner_lr = local.hyper["inner_lr"]
    inner = task.grad(local, first)
    adapted = tree.map(lambda w, g: w - inner_lr * g, local.params, inner.grad)
    return task.grad(local._replace(buffers=inner.buffers), second, params=adapted)


def _correct_by_difference(
    task: Task, local: Local, first: Batch, second: Batch, third: Batch
) -> Step:
    step = _differentiate_adapted(task, local, first, second)
    inner_lr, delta = local.hyper["inner_lr"], local.hyper["delta"]

    def differentiate_beside(distance: float | Tensor) -> Tree:
        at = tree.map(lambda w, g: w + distance * g, local.params, step.grad)
        return task.grad(local, third, params=at).grad

    def correct(g: Tensor, above: Tensor, below: Tensor) -> Tensor:
        corrected: Tensor = g - inner_lr * (above - below) / (2 * delta)
        return corrected

    ahead, behind = differentiate_beside(delta), differentiate_beside(-delta)
    return step._replace(grad=tree.map(correct, step.grad, ahead, behind))


def _repeat(batch: Batch, n: int) -> list[Batch]:
    """Return the batch n times, each with a step of its own, by which dropout is drawn."""
    return [batch._replace(step=batch.step * n + part) for part in range(n)]


def _cut(batch: Batch, n_parts: int) -> list[Batch]:
    """Return the parts of a batch; each is all of a batch of fewer than two examples a part."""
    take = _take_part if batch.mask is None else _take_padded_part
    whole = _repeat(batch, n_parts)
    return [take(one, part, n_parts) for part, one in enumerate(whole)]


def _take_part(batch: Batch, part: int, n_parts: int) -> Batch:
    n = len(batch.y)
    if n < 2 * n_parts:
        return batch
    at = slice(n * part // n_parts, n * (part + 1) // n_parts)
    return batch._replace(x=batch.x[at], y=batch.y[at])


def _take_padded_part(batch: Batch, part: int, n_parts: int) -> Batch:
    """Return the same examples of a batch of which some are padding, which comes last."""
    assert batch.mask is not None
    width, n = len(batch.y), batch.mask.sum()
    is_small = n < 2 * n_parts
    begin = torch.where(is_small, 0, n * part // n_parts)
    end = torch.where(is_small, n, n * (part + 1) // n_parts)
    most = max(ceil_div(width, n_parts), min(width, 2 * n_parts - 1))
    place = begin + torch.arange(most, device=batch.y.device)
    there = place.clamp(max=width - 1)
    return batch._replace(x=batch.x[there], y=batch.y[there], mask=place < end)
