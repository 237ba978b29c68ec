"""What can be stacked: which cells with each other, which models, which algorithms."""

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import zip_longest
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from niidpart.errors import UsageError

from ... import tree
from ...interface import Algorithm, Batch, Local, Step
from ...tasks.model_task import ModelTask
from ..batches import in_order
from ..jobs import Cell, Given, Job, local_of
from .alike import alike
from .stack import How, Stack
from .task import StackedTask, stacked

_ALIKE = (
    "local_epochs",
    "local_steps",
    "batch_size",
    "weight_decay",
    "shuffle",
    "memory",
    "bf16",
    "compile",
)  # of the settings in one stack
_PROBE = 4  # examples
ELSE = "use --engine looped or processes"
_FALLBACK = ".*There is a performance drop because we have not yet implemented the batching rule"  # torch's words for "one by one after all"


class Probed(NamedTuple):
    """What one small step has shown. stack: after it; upload, own: what `finish` gave."""

    how: How
    stack: Stack
    upload: tree.Tree
    own: tree.Tree


def groups(cells: Sequence[Cell]) -> list[list[int]]:
    """The cells that can share a stack, in order: they differ in numbers that algorithms read from `hyper`, learning rate, momentum, seeds, data."""
    out: list[list[int]] = []
    for i, cell in enumerate(cells):
        group = next((group for group in out if _together(cells[group[0]], cell)), None)
        if group is None:
            out.append([i])
        else:
            group.append(i)
    return out


def _together(a: Cell, b: Cell) -> bool:
    settings = all(getattr(a.settings, name) == getattr(b.settings, name) for name in _ALIKE)
    x, y = a.data.train.x, b.data.train.x
    data = (a.data.shape, a.data.n_classes, x.dtype, x.device) == (
        b.data.shape,
        b.data.n_classes,
        y.dtype,
        y.device,
    )
    return (
        settings and data and _same_rule(a.algorithm, b.algorithm) and _same_model(a.task, b.task)
    )


def _same_rule(a: Algorithm, b: Algorithm) -> bool:
    """Whether the functions of one do for the other: of one name, with options that differ only where `hyper` says them, and is asked for them.

    A function that reads an option from elsewhere (the closure of its constructor) is not alike where the option differs.
    """
    if a is b:
        return True
    if not all(
        alike(getattr(a, part), getattr(b, part))
        for part in ("begin", "direction", "finish", "decay", "lockstep")
    ):
        return False
    if (
        not a.spec
        or a.spec != b.spec
        or a.options.keys() != b.options.keys()
        or a.hyper.keys() != b.hyper.keys()
    ):
        return False
    numbers = {
        k
        for k in a.hyper
        if all(
            isinstance(h[k], int | float) and not isinstance(h[k], bool) for h in (a.hyper, b.hyper)
        )
    }
    said = {
        k
        for k in numbers & a.options.keys()
        if a.options[k] == a.hyper[k] and b.options[k] == b.hyper[k]
    }
    options = all(a.options[k] == b.options[k] for k in a.options if k not in said)
    return options and all(a.hyper[k] == b.hyper[k] for k in a.hyper if k not in numbers)


def _same_model(a: ModelTask, b: ModelTask) -> bool:
    """Whether the modules compute the same function of parameters and buffers."""
    if a.module is b.module:
        return a.loss is b.loss
    both = zip_longest(a.module.named_modules(), b.module.named_modules(), fillvalue=("", None))
    return a.loss is b.loss and all(
        p == q and m is not None and n is not None and _same_layer(m, n) for (p, m), (q, n) in both
    )


def _same_layer(a: nn.Module, b: nn.Module) -> bool:
    def values(layer: nn.Module) -> list[tuple[str, Any]]:
        own = [*layer.named_parameters(recurse=False), *layer.named_buffers(recurse=False)]
        return [(name, (t.shape, t.dtype, t.requires_grad)) for name, t in own]

    def rest(layer: nn.Module) -> dict[str, Any]:
        return {k: v for k, v in vars(layer).items() if not k.startswith("_") and k != "training"}

    p, q = rest(a), rest(b)
    same = type(a) is type(b) and values(a) == values(b) and p.keys() == q.keys()
    return same and all(
        p[k] is q[k]
        or (not isinstance(p[k], Tensor) and type(p[k]) is type(q[k]) and bool(p[k] == q[k]))
        for k in p
    )


def mixes(module: nn.Module) -> bool:
    """Whether the examples of a batch meet in the model, so that padding would be seen."""
    return any("BatchNorm" in type(layer).__name__ for layer in module.modules())


def obstacle(cell: Cell, convolutions: str) -> str:
    """Why the model cannot be stacked, with the layer that is in the way; "" if it can. One small step of two jobs, under `torch.func.vmap`."""
    if cell.task.compiled:
        return "compiled models cannot be stacked: leave out --compile"
    x, y = cell.data.train.inputs(slice(0, 2)), cell.data.train.y[:2]
    x, y = (x, y) if len(y) > 1 else (torch.cat([x, x]), torch.cat([y, y]))
    entered: list[str] = []
    task = stacked(replace(cell.task, module=_watched(cell.task.module, entered)), convolutions)
    module = task.module
    params = {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}
    fixed = {
        name: t.detach()
        for name, t in [*module.named_parameters(), *module.named_buffers()]
        if name not in params
    }

    def step(
        task: ModelTask, params: tree.Tree, fixed: tree.Tree, x: Tensor, key: Tensor
    ) -> tuple[tree.Tree, Tensor]:
        def f(at: tree.Tree) -> tuple[Tensor, tree.Tree]:
            return task.loss(
                task.forward(at, fixed, x, train=True, key=key), Batch(x, y, None, 0, 0)
            ), {}

        return task.differentiate(f, params)[:2]

    two = (
        tree.repeat(params, 2),
        tree.repeat(fixed, 2),
        torch.stack([x, x]),
        torch.zeros(2, dtype=torch.int64, device=x.device),
    )
    try:
        with _strict():
            torch.func.vmap(lambda *a: step(task, *a))(*two)
    except Exception as error:
        where = entered[-1] if entered else ""
        try:
            with torch.random.fork_rng([x.device] if x.device.type == "cuda" else []):
                step(cell.task, params, fixed, x, two[3][0])
        except Exception:  # not of stacking: training will say it
            return ""
        layer = (
            f"layer {where!r} ({type(cell.task.module.get_submodule(where)).__name__})"
            if entered
            else "the gradient"
        )
        return f"{layer} cannot run for many jobs at once: {_line(error)}"
    return ""


def _watched(module: nn.Module, entered: list[str]) -> nn.Module:
    """A copy that keeps in `entered` the layers that are at work, the innermost last."""

    def enter(name: str) -> Callable[..., None]:
        return lambda *_: entered.append(name)

    def leave(*_: Any) -> None:
        entered.pop()

    module = copy.deepcopy(module)
    for name, layer in module.named_modules():
        layer.register_forward_pre_hook(enter(name))
        layer.register_forward_hook(leave)
    return module


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
        with _strict():
            return _probed(cells, given, job, task, stage)
    except Exception as error:
        _alone(cells[job.cell], given[job.cell], job)
        raise cannot(cells[job.cell].algorithm.name, at, error) from error


def _probed(
    cells: Sequence[Cell],
    given: Sequence[Given],
    job: Job,
    task: StackedTask,
    stage: Callable[[str], None],
) -> Probed:
    stack = Stack(cells, given, [job], task, How())
    one = range(1)
    stack.begin()
    stage("direction")
    whole = stack.deal.take(0, one, min(_PROBE, *stack.deal.sizes(0, one)))
    step = stack.direction(one, whole)
    padded, epochs = (
        not mixes(task.module) and whole.y.shape[1] > 1,
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
    return Probed(How(padded, epochs), stack, *stack.finish())


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
    task = replace(cell.task, examples=lambda: in_order(examples, job.party, _PROBE))
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


@contextmanager
def _strict() -> Iterator[None]:
    """What torch can only do job by job is an error here: it would take longer than looped."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", _FALLBACK)
        yield


def cannot(name: str, what: str, error: Exception) -> ValueError:
    """The error for an algorithm."""
    return UsageError(
        f"{name} cannot be stacked: its {what} cannot run for many jobs at once: {_line(error)}; {ELSE}"
    )


def _line(error: Exception) -> str:
    """The first sentence of an error."""
    return (
        str(error).strip().splitlines()[0].rstrip(".")[:200]
        if str(error).strip()
        else type(error).__name__
    )
