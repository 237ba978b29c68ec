"""What of a model the native step can run, as the table of layers that it is handed."""

from collections.abc import Iterator
from enum import IntEnum
from math import prod
from typing import Any, NamedTuple

import torch
from torch import nn

from niidpart.errors import UsageError

from ...models import Staged

_MOST, LANES = 2**31 - 1, 64  # places in a block are counted in int32; it has as many examples


class OpKind(IntEnum):
    """As in kernels.h."""

    CONV = 0
    LINEAR = 1
    POOL = 2
    RELU = 3
    SIGMOID = 4
    TANH = 5


_ACTIVATIONS = {nn.ReLU: OpKind.RELU, nn.Sigmoid: OpKind.SIGMOID, nn.Tanh: OpKind.TANH}
_KINDS = "Conv2d, Linear, MaxPool2d(2), ReLU, Sigmoid, Tanh and Flatten in nn.Sequential or fltrain.models.Staged"
_INSTEAD = "use --engine processes or looped"


class LayerTable(NamedTuple):
    """ops: [n, 11] int64, rows of `Op` in kernels.h. names: of the parameters, in the order in which they lie flat."""

    ops: torch.Tensor
    names: list[str]


def tabulate_layers(module: nn.Module, shape: tuple[int, ...]) -> LayerTable:
    """The table of a model for examples of `shape`. ValueError where the native step has no kernel for it: which layer, what works instead."""
    parameters = dict(module.named_parameters())
    wrong = [
        f"parameter {n} is {str(p.dtype).removeprefix('torch.')}, float32 is needed"
        for n, p in parameters.items()
        if p.dtype != torch.float32
    ]
    wrong += [f"parameter {n} is frozen" for n, p in parameters.items() if not p.requires_grad]
    wrong += [f"{name} is a buffer" for name, _ in module.named_buffers()]
    if wrong:
        raise UsageError(
            f"engine native trains parameters of float32 alone, without buffers or frozen ones: {wrong[0]}; {_INSTEAD}"
        )
    at = dict(zip(parameters, _places(p.numel() for p in parameters.values()), strict=True))
    rows: list[list[int]] = []
    met: list[str] = []
    for name, layer in _in_order(module, ""):
        row, shape = _row(name, layer, shape)
        own = {
            kind: f"{name}.{kind}".lstrip(".") for kind, _ in layer.named_parameters(recurse=False)
        }
        met += own.values()
        if row:
            rows.append([*row, *(at.get(own.get(kind, ""), -1) for kind in ("weight", "bias"))])
        if row and _widest(row) * LANES > _MOST:
            raise UsageError(
                f"engine native: {_named(name)} has {_widest(row)} numbers an example, which is too many; {_INSTEAD}"
            )
    if sorted(met) != sorted(at):
        odd = sorted(set(at) ^ set(met)) or sorted(n for n in met if met.count(n) > 1)
        raise UsageError(
            f"engine native: parameter {odd[0]} is not that of one layer at one place; {_INSTEAD}"
        )
    return LayerTable(
        torch.tensor(_pooled_first(rows), dtype=torch.int64).reshape(-1, 11), list(parameters)
    )


def _in_order(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    """The layers with their names, as they are run. ValueError for one with hooks."""
    if any(
        getattr(module, hooks)
        for hooks in (
            "_forward_hooks",
            "_forward_pre_hooks",
            "_backward_hooks",
            "_backward_pre_hooks",
        )
    ):
        raise UsageError(
            f"engine native: {_named(name)} has hooks, which it would not call; {_INSTEAD}"
        )
    if type(module) not in (nn.Sequential, Staged):
        yield name, module
        return
    for (
        key,
        child,
    ) in (
        module._modules.items()
    ):  # not named_children, which leaves out what stands at a second place
        if child is not None:
            yield from _in_order(child, f"{name}.{key}" if name else key)


def _row(name: str, layer: nn.Module, shape: tuple[int, ...]) -> tuple[list[int], tuple[int, ...]]:
    """(an op without its weights, [] for none, the shape behind it)."""
    if type(layer) is nn.Flatten and (layer.start_dim, layer.end_dim) in ((1, -1), (1, len(shape))):
        return [], (prod(shape),)
    if type(layer) in _ACTIVATIONS:
        return [_ACTIVATIONS[type(layer)], *_image(shape), *_image(shape), 0, 0], shape
    if type(layer) is nn.Linear and len(shape) == 1:
        return [OpKind.LINEAR, layer.in_features, 1, 1, layer.out_features, 1, 1, 0, 0], (
            layer.out_features,
        )
    if type(layer) is nn.Conv2d and len(shape) == 3 and _plain(layer):
        k, pad = layer.kernel_size[0], layer.padding[0]
        out = (layer.out_channels, shape[1] + 2 * int(pad) - k + 1, shape[2] + 2 * int(pad) - k + 1)
        return [OpKind.CONV, *shape, *out, k, int(pad)], out
    if type(layer) is nn.MaxPool2d and len(shape) == 3 and _halves(layer):
        out = (shape[0], shape[1] // 2, shape[2] // 2)
        return [OpKind.POOL, *shape, *out, 2, 0], out
    what = repr(layer) if "\n" not in repr(layer) else type(layer).__name__
    raise UsageError(
        f"engine native has no kernel for {_named(name)}, {what}, on {shape}: it knows {_KINDS}; {_INSTEAD}"
    )


def _plain(conv: nn.Conv2d) -> bool:
    """A square kernel, stride 1, one group, zeros around it but no more than the kernel reaches."""
    square = (
        conv.kernel_size[0] == conv.kernel_size[1]
        and not isinstance(conv.padding, str)
        and conv.padding[0] == conv.padding[1]
    )
    alone = (conv.stride, conv.dilation, conv.groups, conv.padding_mode) == (
        (1, 1),
        (1, 1),
        1,
        "zeros",
    )
    return square and alone and int(conv.padding[0]) < conv.kernel_size[0]


def _halves(pool: nn.MaxPool2d) -> bool:
    def pair(value: Any) -> tuple[int, int]:
        return (value, value) if isinstance(value, int) else tuple(value)

    window = pair(pool.kernel_size), pair(pool.stride), pair(pool.padding), pair(pool.dilation)
    return window == ((2, 2), (2, 2), (0, 0), (1, 1)) and not (
        pool.ceil_mode or pool.return_indices
    )


def _named(name: str) -> str:
    return f"layer {name}" if name else "the model"


def _image(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if len(shape) == 3 else (prod(shape), 1, 1)


def _places(sizes: Iterator[int]) -> list[int]:
    places = [0]
    for size in sizes:
        places.append(places[-1] + size)
    if places[-1] > _MOST:
        raise UsageError(
            f"engine native: the model has {places[-1]} parameters, which is too many; {_INSTEAD}"
        )
    return places[:-1]


def _widest(row: list[int]) -> int:
    """Numbers of an example in a layer's input or output, with the zeros around them."""
    _, c, h, w, out, oh, ow, k, _ = row
    return max(c * h * (w + 2 * k), out * oh * (ow + 2 * k))


def _pooled_first(rows: list[list[int]]) -> list[list[int]]:
    """ReLU behind the pooling that follows it: the same values and gradients, on a quarter of the numbers."""
    rows = [list(row) for row in rows]
    for i in range(len(rows) - 1):
        if rows[i][0] == OpKind.RELU and rows[i + 1][0] == OpKind.POOL:
            pool, size = rows[i + 1], rows[i + 1][4:7]
            rows[i], rows[i + 1] = pool, [OpKind.RELU, *size, *size, 0, 0, -1, -1]
    return rows
