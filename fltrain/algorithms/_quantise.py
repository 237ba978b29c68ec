"""Weights rounded at random to 2^bits values, as FedCD sends them."""

import torch
from torch import Tensor

from ..draws import uniform
from ..tree import Tree

_ROUNDING = 0x7A11  # sets these draws apart from others of a job's key


def scales(params: Tree, kinds: dict[str, str]) -> dict[str, str]:
    """Return {parameter: the weight whose largest value is its scale}, of those that are rounded.

    Rounded are weights of convolutions and linear layers, and their biases. A frozen weight is no
    parameter here, and a bias without its weight has no scale.
    """
    scale = {}
    for name, kind in kinds.items():
        if kind in ("conv", "linear") and name in params:
            scale[name] = name
    for weight in list(scale):
        bias = f"{weight.removesuffix('weight')}bias"
        if weight.endswith("weight") and kinds.get(bias) == "bias" and bias in params:
            scale[bias] = weight
    return scale


def quantise(params: Tree, kinds: dict[str, str], bits: int, key: int | Tensor) -> Tree:
    """Return the parameters, those of `scales` rounded. key: of the job, for the draws."""
    scale = scales(params, kinds)
    sizes = [params[name].numel() for name in scale]
    if not sizes:
        return params
    device = params[next(iter(scale))].device
    draws = torch.split(uniform(key ^ _ROUNDING, sum(sizes), device), sizes)
    sent = dict(params)
    for (name, weight), drawn in zip(scale.items(), draws, strict=True):
        largest = params[weight].abs().amax()
        noise = drawn.reshape(params[name].shape) - 0.5
        sent[name] = round_at_random(params[name], largest, bits, noise)
    return sent


def round_at_random(w: Tensor, a: Tensor, bits: int, u: Tensor) -> Tensor:
    """Return 2a (k / L - 1/2) with k = round((w / 2a + 1/2) L + u), L = 2^bits - 1, of the shape
    and type of w. Zhou et al., DoReFa-Net, 2016, Equation 12.

    a: the scale, of no axis; u: of the shape of w, uniform on [-1/2, 1/2), which makes the result
    unbiased for |w| <= a. k is held within 0..L: a bias may be beyond the scale of its weight.
    Where a is 0, w stays.
    """
    n_levels, top, wide = 2**bits - 1, a.double(), w.double()
    safe = torch.where(top > 0, top, 1.0)
    level = (wide / (2 * safe) + 0.5) * n_levels + u
    k = level.round().clamp(0, n_levels)
    rounded = 2 * top * (k / n_levels - 0.5)
    return torch.where(top > 0, rounded, wide).to(w.dtype)
