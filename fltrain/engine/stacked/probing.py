"""One small step of an algorithm, stacked: it shows what can go together.

Short batches are padded, unless examples of a batch meet in the model (batch norm) or something in
a step takes no notice of `Batch.mask`. Jobs in different epochs go together, unless the algorithm
reads `Batch.epoch`. Both are tried, not declared: an algorithm cannot forget to say so.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ... import tree
from ...interface import Batch, Local
from ...tree import Tree
from ..batches import iterate_in_order
from ..jobs import Broadcast, Cell, Job, make_local
from .mixing import Mixing
from .rows import select_first
from .stack import Stack
from .stackable import has_batch_norm, stacking_error, strict_vmap
from .task import StackedTask

_PROBE = 4  # examples
# Between a padded batch and a short one sums have other orders: two steps are taken as equal within
# this, relative to the largest change. A mask that is not heeded changes a step by far more.
_ROUNDING = 1e-3


class Probed(NamedTuple):
    """What one small step has shown. stack: after it; upload, own: what `finish` gave."""

    mixing: Mixing
    stack: Stack
    upload: Tree
    own: Tree


def probe(
    cells: Sequence[Cell],
    broadcasts: Mapping[int, Broadcast],
    job: Job,
    task: StackedTask,
    *,
    is_alone: bool = False,
) -> Probed:
    """Do one small step of one job, stacked.

    is_alone: nothing else will be in the stack, so what may go together is not looked for, which
    takes most of the time. UsageError where the algorithm cannot be stacked; what fails for one job
    by itself is raised as it would be without a stack.
    """
    at = "begin"  # the function that is tried
    try:
        with strict_vmap():
            stack = Stack(
                cells=cells, broadcasts=broadcasts, jobs=[job], task=task, mixing=Mixing()
            )
            stack.begin()
            at = "direction"
            mixing = _try_direction(stack, is_alone)
            at = "finish"
            upload, own = stack.finish()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        _step_alone(cells[job.cell], broadcasts[job.cell], job)
        raise stacking_error(cells[job.cell].algorithm.name, at, error) from error
    return Probed(mixing, stack, upload, own)


def _try_direction(stack: Stack, is_alone: bool) -> Mixing:
    """Do the step, and return what may go together."""
    width = min(_PROBE, *stack.batches.sizes(0, select_first(1)))
    whole = stack.batches.load(0, select_first(1), width)
    step = stack.direct(select_first(1), whole)
    mixing = Mixing() if is_alone else _find_mixing(stack, whole)
    stack.write(1, step)
    return mixing


def _find_mixing(stack: Stack, whole: Batch) -> Mixing:
    """Return what may go together: where the training begins, and at other weights too."""
    padded = not has_batch_norm(stack.task.module) and whole.y.shape[1] > 1
    epochs = stack.algorithm.lockstep == "step"
    here = stack.local
    for local in (here, _move_away(here)):
        stack.move(local)
        padded = padded and _heeds_mask(stack, whole)
        epochs = epochs and _ignores_epoch(stack, whole)
    stack.move(here)
    return Mixing(padded, epochs)


def _move_away(local: Local) -> Local:
    """Return other weights and memories.

    At the start of a run, a term that draws to the start, or to what a party kept, may be nothing:
    it would seem to heed a mask or to ignore an epoch.
    """

    def move(leaf: Tensor) -> Tensor:
        if not leaf.is_floating_point():
            return leaf
        places = torch.arange(leaf.numel(), device=leaf.device)
        by = torch.cos(places).view(leaf.shape)
        return leaf + 0.05 * by.to(leaf.dtype)

    moved: dict[str, Any] = {
        name: tree.map(move, getattr(local, name)) for name in ("params", "each", "own")
    }
    return local._replace(**moved)


def _try_batch(stack: Stack, batch: Batch) -> dict[str, Tensor] | None:
    """Return the leaves of the direction for a batch; None where the algorithm cannot take it."""
    try:
        step = stack.direct(select_first(1), batch)
    except Exception:
        # Whatever it is, a plain batch has gone through: the answer is no, and the jobs are grouped
        # so that it never gets such a batch.
        return None
    return tree.flatten(step._asdict())


def _ignores_epoch(stack: Stack, whole: Batch) -> bool:
    """Return whether the step is the same, bit for bit, in another epoch that comes as a tensor.

    Bit for bit, since a calculation with a tensor in place of a number could round to float32.
    """
    plain = _try_batch(stack, whole)
    another = torch.ones_like(whole.y[:, 0])
    other = _try_batch(stack, whole._replace(epoch=another))
    if plain is None or other is None:
        return False
    return _is_near(other, plain, before={}, bound=0.0)


def _heeds_mask(stack: Stack, whole: Batch) -> bool:
    """Return whether a masked example is as good as none.

    All of the step then is that of the shorter batch, up to rounding.
    """
    mask = torch.ones_like(whole.y, dtype=torch.bool)
    mask[:, -1] = False
    shorter = whole._replace(x=whole.x[:, :-1], y=whole.y[:, :-1])
    masked = _try_batch(stack, whole._replace(mask=mask))
    short = _try_batch(stack, shorter)
    if masked is None or short is None:
        return False
    before = tree.flatten({"buffers": stack.local.buffers, "carry": stack.local.carry})
    return _is_near(masked, short, before=before, bound=_ROUNDING)


def _is_near(
    new: dict[str, Tensor],
    old: dict[str, Tensor],
    *,
    before: dict[str, Tensor],
    bound: float,
) -> bool:
    """Return whether two steps have the same leaves, within `bound` times the largest value.

    before: leaves that there were before the step; of these the largest change counts.
    """
    if _forms_of(new) != _forms_of(old):
        return False
    for path, leaf in old.items():
        a, b = new[path].double(), leaf.double()
        change = b
        if path in before and before[path].shape == leaf.shape:
            change = b - before[path].double()
        within = bound * _largest_finite(change)
        if bound and leaf.is_floating_point():
            # a small change of a large value is itself rounded
            rounding = 16 * torch.finfo(leaf.dtype).eps
            within += rounding * _largest_finite(b)
        if not torch.allclose(a, b, rtol=0.0, atol=within, equal_nan=True):
            return False
    return True


def _forms_of(leaves: dict[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {path: (leaf.shape, leaf.dtype) for path, leaf in leaves.items()}


def _largest_finite(values: Tensor) -> float:
    """Return the largest absolute value among those that are finite; 0 where there is none."""
    values = values[values.isfinite()]
    return float(values.abs().max()) if values.numel() else 0.0


def _step_alone(cell: Cell, broadcast: Broadcast, job: Job) -> None:
    """Do the same small step as any executor would, for the error that it may give."""
    examples = cell.data.train
    in_order = partial(iterate_in_order, examples, job.party, _PROBE)
    task = cell.task.bind_examples(in_order)
    start = examples.indptr[job.party]
    size = min(_PROBE, examples.size(job.party), cell.settings.batch_size)
    at = slice(start, start + size)
    device = examples.y.device
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        local = cell.algorithm.begin(task, make_local(cell, broadcast, job))
        params = tree.clone(local.params)
        local = local._replace(params=params, buffers=tree.clone(local.buffers))
        batch = Batch(x=examples.inputs(at, 1), y=examples.y[at], mask=None, epoch=0, step=0)
        step = cell.algorithm.direction(task, local, batch)
        local = local._replace(buffers=step.buffers, carry=step.carry)
        cell.algorithm.finish(task, local, job.work)
