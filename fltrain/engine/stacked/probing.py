"""One small step of an algorithm, stacked: what of it can go together."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from ... import tree
from ...interface import Batch, Local, Step
from ..batches import iterate_in_order
from ..jobs import Cell, Given, Job, local_of
from .stack import Mixing, Stack
from .stackable import has_batch_norm, stacking_error, strict_vmap
from .task import StackedTask

_PROBE = 4  # examples


class Probed(NamedTuple):
    """What one small step has shown. stack: after it; upload, own: what `finish` gave."""

    how: Mixing
    stack: Stack
    upload: tree.Tree
    own: tree.Tree


def probe(cells: Sequence[Cell], given: Sequence[Given], job: Job, task: StackedTask) -> Probed:
    """One small step of one job, stacked. ValueError where the algorithm cannot be stacked; what fails for one job by itself is raised as it is.

    Short batches are padded, but not where examples of a batch meet in the model, or something in a step takes no notice of `Batch.mask`. Epochs go
    together, but not where the algorithm reads `Batch.epoch`. Both are looked at where the training begins, and elsewhere (`_elsewhere`).
    """
    at = "begin"

    def stage(name: str) -> None:
        nonlocal at
        at = name

    try:
        with strict_vmap():
            return _probed(cells, given, job, task, stage)
    except Exception as error:
        _alone(cells[job.cell], given[job.cell], job)
        raise stacking_error(cells[job.cell].algorithm.name, at, error) from error


def _probed(
    cells: Sequence[Cell],
    given: Sequence[Given],
    job: Job,
    task: StackedTask,
    stage: Callable[[str], None],
) -> Probed:
    stack = Stack(cells, given, [job], task, Mixing())
    one = range(1)
    stack.begin()
    stage("direction")
    whole = stack.deal.take(0, one, min(_PROBE, *stack.deal.sizes(0, one)))
    step = stack.direction(one, whole)
    padded, epochs = (
        not has_batch_norm(task.module) and whole.y.shape[1] > 1,
        stack.algorithm.lockstep == "step",
    )
    here = stack.local
    for local in (here, _elsewhere(here)):
        stack.move(local)
        padded, epochs = (
            padded and _heeds_mask(stack, whole),
            epochs and _ignores_epoch(stack, whole),
        )
    stack.move(here)
    stack.write(1, step)
    stage("finish")
    return Probed(Mixing(padded, epochs), stack, *stack.finish())


def _takes(stack: Stack, batch: Batch) -> Step | None:
    """The direction for such a batch; None where the algorithm, which can do with a plain one, cannot with this."""
    try:
        return stack.direction(range(1), batch)
    except (
        Exception
    ):  # whatever it is: the answer is no, and the jobs are grouped so that it is not asked for
        return None


def _elsewhere(local: Local) -> Local:
    """Other weights and other memories: at the start of a run, a term that draws to the start, or to what a party kept, may be nothing."""

    def moved(leaf: Tensor) -> Tensor:
        by = torch.cos(torch.arange(leaf.numel(), device=leaf.device)).view(leaf.shape)
        return leaf + 0.05 * by.to(leaf.dtype) if leaf.is_floating_point() else leaf

    return local._replace(
        **{name: tree.map(moved, getattr(local, name)) for name in ("params", "each", "own")}
    )


def _ignores_epoch(stack: Stack, whole: Batch) -> bool:
    """Whether the step is the same, bit for bit, in another epoch that comes as a tensor. A calculation with that could round to float32."""
    other = _takes(stack, whole._replace(epoch=torch.ones_like(whole.y[:, 0])))
    plain = _takes(stack, whole)
    return (
        other is not None and plain is not None and _near(_leaves(other), _leaves(plain), {}, 0.0)
    )


def _heeds_mask(stack: Stack, whole: Batch) -> bool:
    """Whether an example that is masked is as good as none: all of the step is that of the shorter batch, but for rounding."""
    mask = torch.ones_like(whole.y, dtype=torch.bool)
    mask[:, -1] = False
    masked = _takes(stack, whole._replace(mask=mask))
    short = _takes(stack, whole._replace(x=whole.x[:, :-1], y=whole.y[:, :-1]))
    if masked is None or short is None:
        return False
    before = tree.flatten({"buffers": stack.local.buffers, "carry": stack.local.carry})
    return _near(_leaves(masked), _leaves(short), before, 1e-3)


def _leaves(step: Step) -> dict[str, Tensor]:
    return tree.flatten(step._asdict())


def _near(
    new: dict[str, Tensor], old: dict[str, Tensor], before: dict[str, Tensor], bound: float
) -> bool:
    """Whether two steps have the same leaves but for `bound`, relative to the largest value; of what was there before, to the largest change."""
    if {k: (v.shape, v.dtype) for k, v in new.items()} != {
        k: (v.shape, v.dtype) for k, v in old.items()
    }:
        return False
    for path, leaf in old.items():
        a, b = new[path].double(), leaf.double()
        known = path in before and before[path].shape == leaf.shape
        within = bound * _largest(b - before[path].double() if known else b)
        if bound and leaf.is_floating_point():  # a small change of a large value is itself rounded
            within += 16 * torch.finfo(leaf.dtype).eps * _largest(b)
        if not torch.allclose(a, b, rtol=0.0, atol=within, equal_nan=True):
            return False
    return True


def _largest(values: Tensor) -> float:
    """The largest absolute value among those that are finite; 0 where there is none."""
    values = values[values.isfinite()]
    return float(values.abs().max()) if values.numel() else 0.0


def _alone(cell: Cell, given: Given, job: Job) -> None:
    """The same small step as any executor would do it, for the error that it may give."""
    examples = cell.data.train
    task = replace(cell.task, examples=lambda: iterate_in_order(examples, job.party, _PROBE))
    start = examples.indptr[job.party]
    at = slice(start, start + min(_PROBE, examples.size(job.party), cell.settings.batch_size))
    with torch.random.fork_rng([examples.y.device] if examples.y.device.type == "cuda" else []):
        local = cell.algorithm.begin(task, local_of(cell, given, job))
        local = local._replace(params=tree.clone(local.params), buffers=tree.clone(local.buffers))
        step = cell.algorithm.direction(
            task, local, Batch(examples.inputs(at, 1), examples.y[at], None, 0, 0)
        )
        cell.algorithm.finish(
            task, local._replace(buffers=step.buffers, carry=step.carry), job.work
        )
