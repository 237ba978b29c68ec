"""Dropout whose masks are drawn by counter: the same whatever executor, worker, chunk or rank runs the job, and however a batch is padded."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor, nn

from ..draws import uniform


class _Counted:
    """What the dropouts have in common. key: of the job and its step, for one pass; without one, and in eval mode, a layer is torch's own.

    number: which of the model's dropouts; calls: how often it was asked in this pass, so that a layer that stands at two places draws twice.
    """

    p: float
    training: bool
    key: int | Tensor | None = None
    number = 0
    calls = 0
    channels_of = 0  # axes of a batch whose whole channels go together; 0: every number for itself

    def forward(self, x: Tensor) -> Tensor:
        """x [B, ...], each number or channel 0 with chance p, the rest times 1 / (1 - p). The counter is the flat position, rows of padding last."""
        if self.key is None or not self.training:
            return super().forward(x)  # type: ignore[misc]
        shape = (
            x.shape
            if not self.channels_of
            else x.shape[:1]
            if x.dim() < self.channels_of
            else x.shape[:2]
        )
        keep = uniform(self.key, shape.numel(), x.device, (self.number, self.calls)) >= self.p
        self.calls += 1
        scaled = keep.to(x.dtype) * (1 / (1 - self.p) if self.p < 1 else 0.0)
        return x * scaled.reshape(shape + (1,) * (x.dim() - len(shape)))


class Dropout(_Counted, nn.Dropout):
    pass


class Dropout1d(_Counted, nn.Dropout1d):
    channels_of = 3  # [C, L] is one example to torch, whose channels are rows


class Dropout2d(_Counted, nn.Dropout2d):
    channels_of = 2  # torch takes [B, C, L] and [B, D] as well


class Dropout3d(_Counted, nn.Dropout3d):
    channels_of = 5


_OURS = {
    nn.Dropout: Dropout,
    nn.Dropout1d: Dropout1d,
    nn.Dropout2d: Dropout2d,
    nn.Dropout3d: Dropout3d,
}


def replace_dropouts(module: nn.Module) -> nn.Module:
    """A copy whose dropouts are those of this file; the module itself where it has none of torch's. Names, weights, modes and hooks stay.

    Subclasses, AlphaDropout and functional dropout are left alone: they draw from torch's generator.
    """
    if not any(type(layer) in _OURS for layer in module.modules()):
        return module
    module = copy.deepcopy(module)
    for layer in module.modules():
        if type(layer) in _OURS:
            layer.__class__ = _OURS[
                type(layer)
            ]  # in its place, so that hooks and layers that stand at two places stay as they are
    for number, layer in enumerate(list_dropouts(module)):
        layer.number = number
    return module


def list_dropouts(module: nn.Module) -> list[_Counted]:
    """Those of this file, in the order of the module."""
    return [layer for layer in module.modules() if isinstance(layer, _Counted)]


@contextmanager
def draw_by(layers: Sequence[_Counted], key: int | Tensor | None) -> Iterator[None]:
    """Within, the layers draw by that key; afterwards by none, so that a module taken out of a run is like torch's own."""
    for layer in layers:
        layer.key, layer.calls = key, 0
    try:
        yield
    finally:
        for layer in layers:
            layer.key = None
