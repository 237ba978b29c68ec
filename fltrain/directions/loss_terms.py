"""Directions whose loss has a term on what the model gives, beside what fixed models give.

A teacher is a model that is not trained: it is in eval mode, and no gradient passes through it. The
loss of a batch is that of the task and weight x a mean over the batch, where the term compares

- `Contrast`: features with those of two teachers, drawn to the one and away from the other (MOON);
- `StageDistance`: the output of one stage with a teacher's, the stage moving on (FedRL).

The terms are constants of one local training, so an executor that knows them can calculate all in
one pass with the gradient: compiled code does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ..interface import Batch, Local, Out, Step, Task
from ..tree import Tree

__all__ = ["Contrast", "ContrastDirection", "DistanceDirection", "StageDistance", "Teacher"]


class Teacher(NamedTuple):
    """A fixed model of the task.

    Attributes
    ----------
    params, buffers : Tree
        As they stay during a local training. `local.buffers` move on: what teaches with those that
        were received carries them.

    Examples
    --------
    >>> Teacher(params={"w": torch.zeros(2)}, buffers={}).params
    {'w': tensor([0., 0.])}
    """

    params: Tree
    buffers: Tree


class Contrast(NamedTuple):
    """weight x mean_b -log(e^(s/T) / (e^(s/T) + e^(r/T))), by the features of an example.

    s and r are the cosines of its features with those of the teachers `towards` and `away`, T is
    the temperature.

    Attributes
    ----------
    towards, away : Teacher
    weight : float or Tensor
        A number, or a tensor of no axis; 0 for no term.
    temperature : float or Tensor

    Examples
    --------
    >>> one, other = Teacher({}, {}), Teacher({}, {})
    >>> Contrast(towards=one, away=other, weight=1.0, temperature=0.5).temperature
    0.5
    """

    towards: Teacher
    away: Teacher
    weight: float | Tensor
    temperature: float | Tensor


@dataclass(frozen=True)
class ContrastDirection:
    """An algorithm's `direction`: the gradient of the loss and a contrast of features.

    Parameters
    ----------
    contrast : callable
        contrast(local) -> Contrast, of what `begin` gave; it must not look at `local.params`.

    Examples
    --------
    Features drawn to those under the weights received, away from those of weights kept:

    >>> def contrast(local):
    ...     received = Teacher(local.start, local.carry["buffers"])
    ...     kept = Teacher(local.own["params"], local.own["buffers"])
    ...     return Contrast(received, kept, weight=local.hyper["mu"], temperature=0.5)
    >>> direction = ContrastDirection(contrast)
    """

    contrast: Callable[[Local], Contrast]

    def __call__(self, task: Task, local: Local, batch: Batch) -> Step:
        """Return the step along the gradient of the loss and the contrast."""
        term = self.contrast(local)

        def weigh_contrast(params: Tree, out: Out) -> Tensor:
            towards = _give_features(term.towards, task, local, batch)
            away = _give_features(term.away, task, local, batch)
            each = contrast_features(out.features.flatten(1), towards, away, term.temperature)
            if batch.mask is None:
                mean = each.mean()
            else:
                mean = (each * batch.mask).sum() / batch.mask.sum().clamp(min=1)
            # a product where a branch would do, since jobs may be stacked: it is always finite
            weighted: Tensor = term.weight * mean
            return weighted

        return task.grad(local, batch, weigh_contrast)


DistanceNorm = Literal["mean_l2", "l2", "mean_sq"]


class StageDistance(NamedTuple):
    """weight x the distance of a stage's outputs from a teacher's.

    Attributes
    ----------
    to : Teacher
    weight : float or Tensor
    norm : {"mean_l2", "l2", "mean_sq"}
        How a batch is reduced: the mean of its examples' 2-norms, the 2-norm of the whole, or the
        mean of the squared norms.
    first : int
        The stage of the first batch, counted on from 0 again behind the last one, the logits.
    moves : {"batch", "epoch", "never"}
        When the term moves on to the next stage.

    Examples
    --------
    >>> StageDistance(Teacher({}, {}), weight=0.5, norm="l2", first=1, moves="never").first
    1
    """

    to: Teacher
    weight: float | Tensor
    norm: DistanceNorm
    first: int = 0
    moves: Literal["batch", "epoch", "never"] = "batch"


@dataclass(frozen=True)
class DistanceDirection:
    """An algorithm's `direction`: the gradient of the loss and a distance at one stage.

    Parameters
    ----------
    distance : callable
        distance(local) -> StageDistance, of what `begin` gave; it must not look at `local.params`.

    Examples
    --------
    The logits beside those under the weights received, for a model of three stages:

    >>> def distance(local):
    ...     received = Teacher(local.start, local.carry["buffers"])
    ...     return StageDistance(received, local.hyper["mu"], "mean_sq", first=2, moves="never")
    >>> direction = DistanceDirection(distance)
    """

    distance: Callable[[Local], StageDistance]

    def __call__(self, task: Task, local: Local, batch: Batch) -> Step:
        """Return the step along the gradient of the loss and the distance."""
        term = self.distance(local)
        stage = (term.first + _count_moves(term, batch)) % task.n_stages
        measure = _NORMS[term.norm]

        def weigh_distance(params: Tree, out: Out) -> Tensor:
            # a tensor cannot say up to which stage a model is run
            last = task.n_stages - 1 if isinstance(stage, Tensor) else stage
            taught = _give_outputs(term.to, task, local, batch, last)
            if isinstance(stage, Tensor):
                gaps = [a - b for a, b in zip(out.taps, taught, strict=True)]
                each = torch.stack([measure(gap.flatten(1), batch.mask) for gap in gaps])
                distance = each.index_select(0, stage.view(1)).squeeze(0)
            else:
                gap = out.taps[stage] - taught[stage]
                distance = measure(gap.flatten(1), batch.mask)
            weighted: Tensor = term.weight * distance
            return weighted

        return task.grad(local, batch, weigh_distance)


def contrast_features(
    z: Tensor, towards: Tensor, away: Tensor, temperature: float | Tensor
) -> Tensor:
    """Return the term of each example [B], between log(1 + e^(-2/T)) and log(1 + e^(2/T)).

    z, towards, away: features [B, D]. Norms below 1e-8 count as that.
    """
    s = F.cosine_similarity(z, towards, dim=1)
    r = F.cosine_similarity(z, away, dim=1)
    return -F.logsigmoid((s - r) / temperature)


@torch.no_grad()
def _give_features(teacher: Teacher, task: Task, local: Local, batch: Batch) -> Tensor:
    """Return what a teacher makes of the batch, [B, D]."""
    at = teacher.params, teacher.buffers
    out = task.forward(*at, batch.x, train=False, key=local.key)
    return out.features.flatten(1)


@torch.no_grad()
def _give_outputs(
    teacher: Teacher,
    task: Task,
    local: Local,
    batch: Batch,
    last: int,
) -> list[Tensor]:
    """Return the outputs of the stages up to the last asked for, under the teacher's weights."""
    at = teacher.params, teacher.buffers
    return task.forward(*at, batch.x, train=False, key=local.key, upto=last).taps


def _count_moves(term: StageDistance, batch: Batch) -> int | Tensor:
    """Return how many stages the term has moved on; a tensor of no axis where a graph counts."""
    if term.moves == "never":
        return 0
    if term.moves == "batch":
        return batch.step
    assert isinstance(batch.epoch, int)  # `lockstep` says so
    return batch.epoch


# Each example of a batch that is padding counts for nothing. At gap 0, where every local training
# begins, `vector_norm` has gradient 0; a root of a sum would have none.


def mean_of_norms(gap: Tensor, mask: Tensor | None) -> Tensor:
    """Return the mean of the 2-norms of gap [B, D]. mask [B]: False on padding; None for none."""
    return _mean(torch.linalg.vector_norm(_without_padding(gap, mask), dim=1), mask)


def norm_of_batch(gap: Tensor, mask: Tensor | None) -> Tensor:
    """Return the 2-norm of all of gap [B, D]. mask [B]: False on padding; None for none."""
    norm: Tensor = torch.linalg.vector_norm(_without_padding(gap, mask))
    return norm


def mean_of_squares(gap: Tensor, mask: Tensor | None) -> Tensor:
    """Return the mean of the squared norms of gap [B, D]. mask [B]: as above."""
    return _mean(_without_padding(gap, mask).square().sum(1), mask)


_NORMS = {"mean_l2": mean_of_norms, "l2": norm_of_batch, "mean_sq": mean_of_squares}


def _without_padding(gap: Tensor, mask: Tensor | None) -> Tensor:
    return gap if mask is None else torch.where(mask.unsqueeze(1), gap, 0)


def _mean(each: Tensor, mask: Tensor | None) -> Tensor:
    return each.mean() if mask is None else each.sum() / mask.sum().clamp(min=1)
