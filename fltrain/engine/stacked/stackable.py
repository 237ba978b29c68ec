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
from ...tasks.unlike_task import UnlikeTask
from ...tree import Tree
from ..jobs import Cell
from .task import make_stacked_task

ELSE = "use --engine looped or processes"
# torch's words for "one by one after all"
_FALLBACK = ".*There is a performance drop because we have not yet implemented the batching rule"


def has_batch_norm(module: nn.Module) -> bool:
    """Return whether the examples of a batch meet in the model, so that padding would be seen."""
    return any("BatchNorm" in type(layer).__name__ for layer in module.modules())


def why_not_stackable(cell: Cell, convolutions: str) -> str:
    """Return why the model cannot be stacked, with the layer that is in the way; "" if it can.

    Tried by one small step of two jobs under `torch.func.vmap`.
    """
    if cell.settings.accumulate > 1:
        return f"accumulate is {cell.settings.accumulate}, and a stack steps with each batch"
    if cell.task.compiled:
        return "compiled models cannot be stacked: leave out --compile"
    if isinstance(cell.task, UnlikeTask):
        return f"parties have models of {len(cell.task.parts)} shapes, which no stack holds"
    entered: list[str] = []
    watched = replace(cell.task, module=_watch_layers(cell.task.module, entered))
    task = make_stacked_task(watched, convolutions)
    trained, fixed = task.split_weights()
    batch = cell.data.sample
    x, device = batch.x, batch.x.device
    keys = torch.zeros(2, dtype=torch.int64, device=device)

    def try_job(trained: Tree, fixed: Tree, x: Tensor, key: Tensor) -> tuple[Tree, Tensor]:
        return task.try_step(trained, fixed, batch._replace(x=x), key)

    two_jobs = (
        tree.repeat(trained, 2),
        tree.repeat(fixed, 2),
        torch.stack([x, x]),
        keys,
    )
    try:
        with strict_vmap():
            torch.func.vmap(try_job)(*two_jobs)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        where = entered[-1] if entered else None
        try:
            with torch.random.fork_rng([device] if device.type == "cuda" else []):
                cell.task.try_step(trained, fixed, batch, keys[0])
        except Exception:  # no fault of stacking: training will say it
            return ""
        return (
            f"{_describe_layer(cell, where)} cannot run for many jobs at once: {first_line(error)}"
        )
    return ""


def _describe_layer(cell: Cell, name: str | None) -> str:
    """Return a layer's name and type, for a message. None: no layer was at work."""
    if name is None:
        return "the gradient"
    return f"layer {name!r} ({type(cell.task.module.get_submodule(name)).__name__})"


def _watch_layers(module: nn.Module, entered: list[str]) -> nn.Module:
    """Return a copy that keeps in `entered` the layers that are at work, the innermost last."""

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
    """Make an error of what torch can only do job by job: it would take longer than a loop."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", _FALLBACK)
        yield


def stacking_error(name: str, what: str, error: Exception) -> UsageError:
    """Return the error for an algorithm, one of whose functions cannot run under vmap."""
    return UsageError(
        f"{name} cannot be stacked: its {what} cannot run for many jobs at once: "
        f"{first_line(error)}; {ELSE}"
    )


def first_line(error: BaseException) -> str:
    """Return the beginning of an error's text; its class where it has none."""
    text = str(error).strip()
    return text.splitlines()[0].rstrip(".")[:200] if text else type(error).__name__
