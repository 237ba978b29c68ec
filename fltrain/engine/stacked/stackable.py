"""Which models can be stacked, and what stands in the way."""

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from niidpart.errors import UsageError

from ... import tree
from ...interface import Batch
from ...tasks.model_task import ModelTask
from ..jobs import Cell
from .task import make_stacked_task

ELSE = "use --engine looped or processes"
_FALLBACK = ".*There is a performance drop because we have not yet implemented the batching rule"  # torch's words for "one by one after all"


def has_batch_norm(module: nn.Module) -> bool:
    """Whether the examples of a batch meet in the model, so that padding would be seen."""
    return any("BatchNorm" in type(layer).__name__ for layer in module.modules())


def why_not_stackable(cell: Cell, convolutions: str) -> str:
    """Why the model cannot be stacked, with the layer that is in the way; "" if it can. One small step of two jobs, under `torch.func.vmap`."""
    if cell.task.compiled:
        return "compiled models cannot be stacked: leave out --compile"
    x, y = cell.data.train.inputs(slice(0, 2)), cell.data.train.y[:2]
    x, y = (x, y) if len(y) > 1 else (torch.cat([x, x]), torch.cat([y, y]))
    entered: list[str] = []
    task = make_stacked_task(
        replace(cell.task, module=_watched(cell.task.module, entered)), convolutions
    )
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
        with strict_vmap():
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
        return f"{layer} cannot run for many jobs at once: {first_line(error)}"
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


@contextmanager
def strict_vmap() -> Iterator[None]:
    """What torch can only do job by job is an error here: it would take longer than looped."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", _FALLBACK)
        yield


def stacking_error(name: str, what: str, error: Exception) -> ValueError:
    """The error for an algorithm."""
    return UsageError(
        f"{name} cannot be stacked: its {what} cannot run for many jobs at once: {first_line(error)}; {ELSE}"
    )


def first_line(error: Exception) -> str:
    """The first sentence of an error."""
    return (
        str(error).strip().splitlines()[0].rstrip(".")[:200]
        if str(error).strip()
        else type(error).__name__
    )
