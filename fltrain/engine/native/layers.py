"""The layers of a model that the compiled code can run, as a table that it reads."""

from collections.abc import Iterator
from enum import IntEnum
from math import prod
from typing import Any, NamedTuple

import torch
from torch import nn

from niidpart.errors import UsageError

from ...feature_layer import FeatureTap
from ...models import Staged

LANES = 64  # the most examples that a block has
_MOST = 2**31 - 1  # places in a block are counted in int32
_KNOWN = (
    "Conv2d, Linear, MaxPool2d(2), ReLU, Sigmoid, Tanh and Flatten in nn.Sequential "
    "or fltrain.models.Staged"
)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_INSTEAD = "use --engine processes or looped"

Shape = tuple[int, ...]


class OpKind(IntEnum):
    """`Kind` of kernels.h."""

    CONV = 0
    LINEAR = 1
    POOL = 2
    RELU = 3
    SIGMOID = 4
    TANH = 5


_ACTIVATIONS = {
    nn.ReLU: OpKind.RELU,
    nn.Sigmoid: OpKind.SIGMOID,
    nn.Tanh: OpKind.TANH,
}


class Op(NamedTuple):
    """A layer: `Op` of kernels.h, the same fields in the same order.

    c, h, w: of the input ([c, 1, 1] where it is flat); out, oh, ow: of the output; k, pad: of a
    convolution; weight, bias: where they begin in the flat parameters, -1 for none.
    """

    kind: OpKind
    c: int
    h: int
    w: int
    out: int
    oh: int
    ow: int
    k: int = 0
    pad: int = 0
    weight: int = -1
    bias: int = -1

    @property
    def widest(self) -> int:
        """Numbers of an example in input or output, with the zeros around them."""
        around = 2 * self.k
        before = self.c * self.h * (self.w + around)
        after = self.out * self.oh * (self.ow + around)
        return max(before, after)


class LayerTable(NamedTuple):
    """ops: [n, 11] int64, rows of `Op`. names: of the parameters, in the order they lie flat.

    sizes: numbers in each of them.
    """

    ops: torch.Tensor
    names: list[str]
    sizes: list[int]

    @property
    def n_parameters(self) -> int:
        """Numbers in all parameters."""
        return sum(self.sizes)


def tabulate_layers(module: nn.Module, shape: Shape) -> LayerTable:
    """Return the table of a model for examples of `shape`.

    UsageError where the compiled code has no kernel for it: which layer, and what works instead.
    """
    parameters = dict(module.named_parameters())
    _require_plain_parameters(module, parameters)
    begins = _place_parameters(parameters)
    ops: list[Op] = []
    met: list[str] = []  # parameters, in the order in which layers use them
    for name, layer in _iterate_layers(module, ""):
        own = {
            kind: f"{name}.{kind}".lstrip(".") for kind, _ in layer.named_parameters(recurse=False)
        }
        met += own.values()
        op, shape = _translate(name, layer, shape)
        if op is None:
            continue
        if op.widest * LANES > _MOST:
            raise UsageError(
                f"engine native: {_describe(name)} has {op.widest} numbers an example, "
                f"which is too many; {_INSTEAD}"
            )
        weight, bias = (begins.get(own.get(kind, ""), -1) for kind in ("weight", "bias"))
        ops.append(op._replace(weight=weight, bias=bias))
    if sorted(met) != sorted(begins):
        _raise_odd_parameter(met, set(begins))
    table = torch.tensor(_pool_before_relu(ops), dtype=torch.int64)
    n_fields = len(Op._fields)
    sizes = [parameter.numel() for parameter in parameters.values()]
    return LayerTable(table.reshape(-1, n_fields), list(parameters), sizes)


def _require_plain_parameters(module: nn.Module, parameters: dict[str, nn.Parameter]) -> None:
    """Raise a UsageError for parameters other than trained ones of float32, and for buffers."""
    wrong = []
    for name, parameter in parameters.items():
        if parameter.dtype != torch.float32:
            dtype = str(parameter.dtype).removeprefix("torch.")
            wrong.append(f"parameter {name} is {dtype}, float32 is needed")
    wrong += [
        f"parameter {name} is frozen" for name, p in parameters.items() if not p.requires_grad
    ]
    wrong += [f"{name} is a buffer" for name, _ in module.named_buffers()]
    if wrong:
        raise UsageError(
            "engine native trains parameters of float32 alone, without buffers or frozen ones: "
            f"{wrong[0]}; {_INSTEAD}"
        )


def _place_parameters(parameters: dict[str, nn.Parameter]) -> dict[str, int]:
    """Return where each parameter begins, one after another."""
    begins, end = {}, 0
    for name, parameter in parameters.items():
        begins[name] = end
        end += parameter.numel()
    if end > _MOST:
        raise UsageError(
            f"engine native: the model has {end} parameters, which is too many; {_INSTEAD}"
        )
    return begins


def _raise_odd_parameter(met: list[str], known: set[str]) -> None:
    """Raise the UsageError for a parameter that no layer uses, or that two do."""
    odd = sorted(known ^ set(met))
    if not odd:
        odd = sorted(name for name in met if met.count(name) > 1)
    raise UsageError(
        f"engine native: parameter {odd[0]} is not that of one layer at one place; {_INSTEAD}"
    )


def _iterate_layers(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    """Yield the layers with their names, as they are run. UsageError for one with hooks."""
    hooks = [hook for kind in _HOOKS for hook in getattr(module, kind).values()]
    # a tap is for algorithms that look into the model, and those are not run here
    if not all(isinstance(hook, FeatureTap) for hook in hooks):
        raise UsageError(
            f"engine native: {_describe(name)} has hooks, which it would not call; {_INSTEAD}"
        )
    if type(module) not in (nn.Sequential, Staged):
        yield name, module
        return
    # not named_children, which leaves out what stands at a second place
    for key, child in module._modules.items():
        if child is not None:
            yield from _iterate_layers(child, f"{name}.{key}" if name else key)


def _translate(name: str, layer: nn.Module, shape: Shape) -> tuple[Op | None, Shape]:
    """Return (an op without its parameters, None for nothing to do; the shape behind it)."""
    if type(layer) is nn.Flatten and layer.start_dim == 1 and layer.end_dim in (-1, len(shape)):
        return None, (prod(shape),)
    if type(layer) in _ACTIVATIONS:
        image = _as_image(shape)
        return Op(_ACTIVATIONS[type(layer)], *image, *image), shape
    if type(layer) is nn.Linear and len(shape) == 1:
        n_in, n_out = layer.in_features, layer.out_features
        return Op(OpKind.LINEAR, n_in, 1, 1, n_out, 1, 1), (n_out,)
    if type(layer) is nn.Conv2d and len(shape) == 3 and _is_plain_convolution(layer):
        k, pad = layer.kernel_size[0], int(layer.padding[0])
        grown = 2 * pad - k + 1
        behind = (layer.out_channels, shape[1] + grown, shape[2] + grown)
        return Op(OpKind.CONV, *shape, *behind, k=k, pad=pad), behind
    if type(layer) is nn.MaxPool2d and len(shape) == 3 and _is_halving(layer):
        behind = (shape[0], shape[1] // 2, shape[2] // 2)
        return Op(OpKind.POOL, *shape, *behind, k=2), behind
    text = repr(layer)
    what = type(layer).__name__ if "\n" in text else text
    raise UsageError(
        f"engine native has no kernel for {_describe(name)}, {what}, on {shape}; "
        f"it knows {_KNOWN}; {_INSTEAD}"
    )


def _is_plain_convolution(conv: nn.Conv2d) -> bool:
    """Return whether the kernel is square, with stride 1, one group, and zeros around the image.

    No more zeros than the kernel reaches: the gradient is a convolution with the kernel turned
    round and k - 1 - pad zeros around it, which must not be negative.
    """
    if isinstance(conv.padding, str) or conv.padding_mode != "zeros":
        return False
    height, width = conv.kernel_size
    if height != width or conv.padding[0] != conv.padding[1]:
        return False
    if conv.stride != (1, 1) or conv.dilation != (1, 1) or conv.groups != 1:
        return False
    return int(conv.padding[0]) < height


def _is_halving(pool: nn.MaxPool2d) -> bool:
    """Return whether the pooling takes the largest of each 2 x 2."""
    window = [pool.kernel_size, pool.stride, pool.padding, pool.dilation]
    if [_as_pair(value) for value in window] != [(2, 2), (2, 2), (0, 0), (1, 1)]:
        return False
    return not pool.ceil_mode and not pool.return_indices


def _as_pair(value: Any) -> tuple[int, ...]:
    return (value, value) if isinstance(value, int) else tuple(value)


def _describe(name: str) -> str:
    return f"layer {name}" if name else "the model"


def _as_image(shape: Shape) -> Shape:
    return shape if len(shape) == 3 else (prod(shape), 1, 1)


def _pool_before_relu(ops: list[Op]) -> list[Op]:
    """Return the layers with each ReLU behind the pooling that follows it.

    The same values and gradients, on a quarter of the numbers.
    """
    ops = list(ops)
    for i in range(len(ops) - 1):
        first, pool = ops[i], ops[i + 1]
        if first.kind == OpKind.RELU and pool.kind == OpKind.POOL:
            size = (pool.out, pool.oh, pool.ow)
            ops[i] = pool
            ops[i + 1] = Op(OpKind.RELU, *size, *size)
    return ops
