"""Which cells can share a stack."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from torch import Tensor, nn

from ...interface import Algorithm
from ...tasks.model_task import ModelTask
from ..jobs import Cell
from .alike import alike

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


def group_cells(cells: Sequence[Cell]) -> list[list[int]]:
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
