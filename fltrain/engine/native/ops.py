"""The operations that the compiled code knows, and how torch's layers become them."""

from collections.abc import Callable
from enum import IntEnum
from math import prod
from typing import Any, NamedTuple

import numpy as np
from torch import nn

from ...counting import ceil_div
from ...tasks.dropout import CounterDropout, Dropout, Dropout1d, Dropout2d, Dropout3d
from .windows import WindowAxis, as_pair, find_window

Shape = tuple[int, ...]

_MOST_PLACES = 127  # of a window: its place is kept in a byte
# The least eps of a norm of each example. Vector lanes without an example are all zeros: with less
# the inverse of their deviation would be infinite, and what it is multiplied by no number.
_LEAST_EPS = float(np.finfo(np.float32).tiny)


class OpKind(IntEnum):
    """`Kind` of ops.h."""

    CONV = 0
    LINEAR = 1
    POOL = 2
    AVERAGE = 3
    RELU = 4
    SIGMOID = 5
    TANH = 6
    ADD = 7
    DROPOUT = 8
    GROUP_NORM = 9
    BATCH_NORM = 10
    TAP = 11


ACTIVATIONS = {
    nn.ReLU: OpKind.RELU,
    nn.Sigmoid: OpKind.SIGMOID,
    nn.Tanh: OpKind.TANH,
}


class Op(NamedTuple):
    """An operation: `Op` of ops.h, the same fields in the same order, where they are explained.

    The graph fills in the tensors, and where parameters and buffers begin.
    """

    kind: OpKind
    source: int = -1  # `from` of ops.h
    also: int = -1
    to: int = -1
    c: int = 1
    h: int = 1
    w: int = 1
    out: int = 1
    oh: int = 1
    ow: int = 1
    kh: int = 0
    kw: int = 0
    stride_h: int = 1
    stride_w: int = 1
    pad_h: int = 0
    pad_w: int = 0
    step_h: int = 1
    step_w: int = 1
    parts: int = 1
    weight: int = -1
    bias: int = -1
    mean: int = -1
    variance: int = -1
    scaled: int = 1
    with_zeros: int = 0
    number: int = 0
    call: int = 0
    value: float = 0.0
    keep: float = 0.0

    @property
    def widest(self) -> int:
        """Numbers of an example in input or output, with the zeros around them."""
        around = 2 * self.kw * self.step_w
        before = self.c * self.h * (self.w + around)
        after = self.out * self.oh * (self.ow + around)
        return max(before, after)


class Translated(NamedTuple):
    """A layer as an operation, None for nothing to do, and the shape behind it."""

    op: Op | None
    shape: Shape


def translate_layer(layer: nn.Module, shape: Shape) -> Translated | None:
    """Return a layer as an operation on examples of `shape`; None where there is none for it."""
    if type(layer) in ACTIVATIONS:
        return _keep_shape(Op(ACTIVATIONS[type(layer)]), shape)
    translate = _TRANSLATIONS.get(type(layer))
    return None if translate is None else translate(layer, shape)


def make_sum(shape: Shape, also: int = -1) -> Op:
    """Return the operation that adds a second tensor of that shape; -1 for a copy of the first."""
    return _fit_shape(Op(OpKind.ADD, also=also), shape)


def make_tap(shape: Shape) -> Op:
    """Return the operation that lets a term of the loss read a tensor."""
    return _fit_shape(Op(OpKind.TAP), shape)


def make_relu(shape: Shape) -> Op:
    """Return the operation of ReLU."""
    return _fit_shape(Op(OpKind.RELU), shape)


def _keep_shape(op: Op, shape: Shape) -> Translated:
    """Translate to an operation whose output has the shape of its input."""
    return Translated(_fit_shape(op, shape), shape)


def _fit_shape(op: Op, shape: Shape) -> Op:
    """Return an operation with that shape of input and output."""
    c, h, w = shape if len(shape) == 3 else (prod(shape), 1, 1)
    return op._replace(c=c, h=h, w=w, out=c, oh=h, ow=w)


def _change_shape(op: Op, shape: Shape, behind: Shape) -> Translated:
    """Return an operation from images to images."""
    c, h, w = shape
    out, oh, ow = behind
    return Translated(op._replace(c=c, h=h, w=w, out=out, oh=oh, ow=ow), behind)


def _skip_identity(_: nn.Identity, shape: Shape) -> Translated:
    return Translated(None, shape)


def _flatten(layer: nn.Flatten, shape: Shape) -> Translated | None:
    if layer.start_dim != 1 or layer.end_dim not in (-1, len(shape)):
        return None
    return Translated(None, (prod(shape),))


def _translate_linear(layer: nn.Linear, shape: Shape) -> Translated | None:
    if len(shape) != 1:
        return None
    n_in, n_out = layer.in_features, layer.out_features
    return Translated(Op(OpKind.LINEAR, c=n_in, out=n_out), (n_out,))


def _translate_convolution(conv: nn.Conv2d, shape: Shape) -> Translated | None:
    """Translate a convolution with zeros around the image.

    No more zeros than the kernel reaches.
    """
    if len(shape) != 3 or conv.padding_mode != "zeros" or isinstance(conv.padding, str):
        return None
    rows, columns = find_window(conv.kernel_size, conv.stride, conv.padding, conv.dilation)
    if rows.pad >= rows.reach or columns.pad >= columns.reach:
        return None
    op = _lay_window(Op(OpKind.CONV, parts=conv.groups), rows, columns)
    sides = rows.count_places(shape[1]), columns.count_places(shape[2])
    return _change_shape(op, shape, (conv.out_channels, *sides))


def _translate_pool(pool: nn.MaxPool2d | nn.AvgPool2d, shape: Shape) -> Translated | None:
    if len(shape) != 3:
        return None
    rows, columns = find_window(pool.kernel_size, pool.stride, pool.padding)
    kind = OpKind.POOL
    with_zeros = 0
    if isinstance(pool, nn.AvgPool2d):
        kind = OpKind.AVERAGE
        with_zeros = int(pool.count_include_pad)
        if pool.divisor_override:
            return None
    elif (
        as_pair(pool.dilation) != (1, 1) or pool.return_indices or rows.k * columns.k > _MOST_PLACES
    ):
        return None
    op = _lay_window(Op(kind, with_zeros=with_zeros), rows, columns)
    sides = [
        axis.count_rounded_up(size) if pool.ceil_mode else axis.count_places(size)
        for axis, size in zip((rows, columns), shape[1:], strict=True)
    ]
    return _change_shape(op, shape, (shape[0], *sides))


def _translate_adaptive(
    pool: nn.AdaptiveAvgPool2d | nn.AdaptiveMaxPool2d, shape: Shape
) -> Translated | None:
    """Translate the mean or the largest of so many even parts of an image."""
    if len(shape) != 3:
        return None
    pair = as_pair(pool.output_size)
    sides = [size if side is None else side for size, side in zip(shape[1:], pair, strict=True)]
    kind = OpKind.AVERAGE
    if isinstance(pool, nn.AdaptiveMaxPool2d):
        kind = OpKind.POOL
        # parts may share a place at each end
        widest = [ceil_div(size, side) + 1 for size, side in zip(shape[1:], sides, strict=True)]
        if pool.return_indices or prod(widest) > _MOST_PLACES:
            return None
    return _change_shape(Op(kind), shape, (shape[0], *sides))


def _translate_dropout(layer: CounterDropout, shape: Shape) -> Translated:
    """Translate dropout of numbers, or of what torch takes for the channels of a batch."""
    parts = prod(shape)
    if layer.channels_of:
        has_channels = len(shape) + 1 >= layer.channels_of
        parts = shape[0] if has_channels else 1
    op = Op(OpKind.DROPOUT, parts=parts, number=layer.number, value=layer.p)
    return _keep_shape(op, shape)


def _translate_batch_norm(norm: nn.BatchNorm1d | nn.BatchNorm2d, shape: Shape) -> Translated | None:
    """Translate batch norm with running statistics that forget at a fixed pace."""
    n_axes = 3 if isinstance(norm, nn.BatchNorm2d) else 1
    if len(shape) != n_axes or norm.momentum is None or norm.running_mean is None:
        return None
    return _keep_shape(Op(OpKind.BATCH_NORM, value=norm.eps, keep=1 - norm.momentum), shape)


def _translate_group_norm(norm: nn.GroupNorm, shape: Shape) -> Translated | None:
    if len(shape) not in (1, 3) or norm.eps < _LEAST_EPS:
        return None
    plane = prod(shape[1:])  # numbers of a channel
    op = Op(OpKind.GROUP_NORM, parts=norm.num_groups, scaled=plane, value=norm.eps)
    return _keep_shape(op, shape)


def _translate_instance_norm(norm: nn.InstanceNorm2d, shape: Shape) -> Translated | None:
    """Translate a norm of each channel of an example, without running statistics."""
    if len(shape) != 3 or norm.eps < _LEAST_EPS or norm.track_running_stats:
        return None
    channels, plane = shape[0], prod(shape[1:])
    if plane < 2 or channels != norm.num_features:
        return None  # torch refuses the one and warns of the other
    op = Op(OpKind.GROUP_NORM, parts=channels, scaled=plane, value=norm.eps)
    return _keep_shape(op, shape)


def _translate_layer_norm(norm: nn.LayerNorm, shape: Shape) -> Translated | None:
    if tuple(norm.normalized_shape) != shape or norm.eps < _LEAST_EPS:
        return None
    return _keep_shape(Op(OpKind.GROUP_NORM, value=norm.eps), shape)


_TRANSLATIONS: dict[type[nn.Module], Callable[[Any, Shape], Translated | None]] = {
    nn.Identity: _skip_identity,
    nn.Flatten: _flatten,
    nn.Linear: _translate_linear,
    nn.Conv2d: _translate_convolution,
    nn.MaxPool2d: _translate_pool,
    nn.AvgPool2d: _translate_pool,
    nn.AdaptiveAvgPool2d: _translate_adaptive,
    nn.AdaptiveMaxPool2d: _translate_adaptive,
    Dropout: _translate_dropout,
    Dropout1d: _translate_dropout,
    Dropout2d: _translate_dropout,
    Dropout3d: _translate_dropout,
    nn.BatchNorm1d: _translate_batch_norm,
    nn.BatchNorm2d: _translate_batch_norm,
    nn.GroupNorm: _translate_group_norm,
    nn.InstanceNorm2d: _translate_instance_norm,
    nn.LayerNorm: _translate_layer_norm,
}


def _lay_window(op: Op, rows: WindowAxis, columns: WindowAxis) -> Op:
    return op._replace(
        kh=rows.k,
        kw=columns.k,
        stride_h=rows.stride,
        stride_w=columns.stride,
        pad_h=rows.pad,
        pad_w=columns.pad,
        step_h=rows.step,
        step_w=columns.step,
    )
