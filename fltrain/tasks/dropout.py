"""Dropout whose masks are drawn by counter.

They are the same whatever executor, worker, chunk or rank runs the job, and however a batch is
padded.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..draws import mark_at_least


class CounterDropout(nn.Module):
    """What the dropouts have in common.

    key: of the job and its step, for one pass; without one, and in eval mode, a layer is torch's
    own. number: which of the model's dropouts; calls: how often it was asked in this pass, so that
    a layer that stands at two places draws twice.
    """

    p: float
    key: int | Tensor | None = None
    number: int = 0
    calls: int = 0
    channels_of: int = 0  # axes of a batch whose whole channels go; 0: every number for itself

    def forward(self, x: Tensor) -> Tensor:
        """Return x [B, ...], each number or channel 0 with chance p, the rest times 1 / (1 - p).

        The counter is the flat position: rows of padding come last, and change nothing before them.
        """
        if self.key is None or not self.training:
            out: Tensor = super().forward(x)
            return out
        shape = self._mask_shape(x)
        at = (self.number, self.calls)
        self.calls += 1
        keep = mark_at_least(self.p, self.key, shape.numel(), x.device, at).to(x.dtype)
        scaled = keep * (1 / (1 - self.p) if self.p < 1 else 0.0)
        return x * scaled.reshape(shape + (1,) * (x.dim() - len(shape)))

    def _mask_shape(self, x: Tensor) -> torch.Size:
        """Return the axes that are drawn for: all, or examples and channels."""
        if not self.channels_of:
            return x.shape
        return x.shape[:1] if x.dim() < self.channels_of else x.shape[:2]


class Dropout(CounterDropout, nn.Dropout):
    pass


class Dropout1d(CounterDropout, nn.Dropout1d):
    channels_of = 3  # [C, L] is one example to torch, whose channels are rows


class Dropout2d(CounterDropout, nn.Dropout2d):
    channels_of = 2  # torch takes [B, C, L] and [B, D] as well


class Dropout3d(CounterDropout, nn.Dropout3d):
    channels_of = 5


_OURS: dict[type[nn.Module], type[CounterDropout]] = {
    nn.Dropout: Dropout,
    nn.Dropout1d: Dropout1d,
    nn.Dropout2d: Dropout2d,
    nn.Dropout3d: Dropout3d,
}


def replace_dropouts(module: nn.Module) -> nn.Module:
    """Return a copy whose dropouts are those of this file; the module itself where it has none.

    Names, weights, modes and hooks stay. Subclasses, AlphaDropout and functional dropout are left
    alone: they draw from torch's generator.
    """
    if not any(type(layer) in _OURS for layer in module.modules()):
        return module
    module = copy.deepcopy(module)
    for layer in module.modules():
        ours: Any = _OURS.get(type(layer))
        if ours is not None:
            # in its place, so that its hooks stay, and a layer that stands at two places is one
            layer.__class__ = ours
    for number, dropout in enumerate(list_dropouts(module)):
        dropout.number = number
    return module


def list_dropouts(module: nn.Module) -> list[CounterDropout]:
    """Return the dropouts of this file, in the order of the module."""
    return [layer for layer in module.modules() if isinstance(layer, CounterDropout)]


@contextmanager
def draw_by(layers: Sequence[CounterDropout], key: int | Tensor | None) -> Iterator[None]:
    """Let the layers draw by that key within, and afterwards by none.

    A module that is taken out of a run is then like torch's own.
    """
    for layer in layers:
        layer.key = key
        layer.calls = 0
    try:
        yield
    finally:
        for layer in layers:
            layer.key = None
