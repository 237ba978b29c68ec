"""Convolutions of many jobs at once: grouped, as `torch.func.vmap` makes them, or as products with the columns of the image."""

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from niidpart.errors import UsageError

# By device, a plain constant, so that a run's bits never depend on a clock. cpu: measured, a step of the papers' CNN for 10 jobs of 64 images on one
# core: 49 ms grouped and 57 ms as products (1 x 28 x 28), 83 and 186 ms (3 x 32 x 32); one job after another 30 and 50 ms. cuda: not measured;
# cuDNN is known to be slow at the gradient of grouped convolutions, and products are what a GPU does best.
BEST = {"cpu": "grouped", "cuda": "product"}


class _Columns(torch.autograd.Function):
    """x [B, C, H, W] -> [C kh kw, B H' W']: what stands under the kernel, for each place. Its gradient is torch's `fold`.

    `F.unfold` starts a kernel for each image on CUDA, and the gradient of `Tensor.unfold` has no batching rule; this is one copy each way.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Tensor:
        x = F.pad(x, (padding[1], padding[1], padding[0], padding[0])) if any(padding) else x
        for axis in (2, 3):
            x = x.unfold(axis, dilation[axis - 2] * (kernel[axis - 2] - 1) + 1, stride[axis - 2])
        x = x[..., :: dilation[0], :: dilation[1]]  # [B, C, H', W', kh, kw]
        return x.permute(1, 4, 5, 0, 2, 3).reshape(x.shape[1] * kernel[0] * kernel[1], -1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, *ctx.options = inputs
        ctx.shape = x.shape

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        kernel, stride, padding, dilation = ctx.options
        columns = grads[0].reshape(len(grads[0]), ctx.shape[0], -1).transpose(0, 1)
        return (
            F.fold(columns, ctx.shape[2:], kernel, dilation, padding, stride),
            None,
            None,
            None,
            None,
        )


class _Product(nn.Conv2d):
    """The same convolution: weight [O, C kh kw] times the columns."""

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] -> [B, O, H', W']; an image by itself [C, H, W] is left to torch."""
        if x.dim() != 4:
            return super().forward(x)
        padding: Any = self.padding  # two numbers: `with_convolutions` sees to it
        k, s, d = self.kernel_size, self.stride, self.dilation
        size = [
            (x.shape[2 + i] + 2 * padding[i] - d[i] * (k[i] - 1) - 1) // s[i] + 1 for i in (0, 1)
        ]
        if x.shape[1] != self.in_channels or min(size) < 1:
            return super().forward(x)  # for its error
        out: Tensor = self.weight.flatten(1) @ _Columns.apply(x, k, s, padding, d)
        if self.bias is not None:
            out = out + self.bias.unsqueeze(1)
        return out.reshape(self.out_channels, len(x), *size).transpose(0, 1)


def with_convolutions(module: nn.Module, how: str) -> nn.Module:
    """how "product": a copy whose nn.Conv2d, of one group and padded with zeros by numbers, are products; names and weights stay. "grouped": itself.

    ValueError for another word.
    """
    if how not in ("grouped", "product"):
        raise UsageError(f"convolutions are {how!r}; they can be 'grouped' or 'product'")
    if how == "grouped" or not any(_fits(layer) for layer in module.modules()):
        return module
    module = copy.deepcopy(module)
    for layer in module.modules():
        if _fits(layer):
            layer.__class__ = _Product  # in its place, so that hooks and layers that stand at two places stay as they are
    return module


def _fits(layer: nn.Module) -> bool:
    return (
        type(layer) is nn.Conv2d
        and layer.groups == 1
        and layer.padding_mode == "zeros"
        and not isinstance(layer.padding, str)
    )
