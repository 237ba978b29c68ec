"""Weights rounded at random to 2^bits values, as FedCD sends them."""

import torch
from torch import Tensor

from ..draws import uniform
from ..tree import Tree

_ROUNDING = 0x7A11  # sets these draws apart from others of a job's key


def scales(params: Tree, kinds: dict[str, str]) -> dict[str, str]:
    """{parameter: the weight whose largest value is its scale}, of the trained ones. Rounded are weights of convolutions and linear layers, and
    their biases. A frozen weight is no parameter here, and a bias without its weight has no scale."""
    weights = [
        name for name, kind in kinds.items() if kind in ("conv", "linear") and name in params
    ]
    biases = {
        f"{name.removesuffix('weight')}bias": name for name in weights if name.endswith("weight")
    }
    return {name: name for name in weights} | {
        name: weight
        for name, weight in biases.items()
        if kinds.get(name) == "bias" and name in params
    }


def quantised(params: Tree, kinds: dict[str, str], bits: int, key: int | Tensor) -> Tree:
    """The parameters, those of `scales` rounded. key: of the job, for the draws."""
    scale = scales(params, kinds)
    sizes = [params[name].numel() for name in scale]
    if not sizes:
        return params
    drawn = uniform(key ^ _ROUNDING, sum(sizes), params[next(iter(scale))].device).split(sizes)
    return params | {
        name: rounded(
            params[name], params[weight].abs().amax(), bits, u.reshape(params[name].shape) - 0.5
        )
        for (name, weight), u in zip(scale.items(), drawn, strict=True)
    }


def rounded(w: Tensor, a: Tensor, bits: int, u: Tensor) -> Tensor:
    """2a (k / L - 1/2) with k = round((w / 2a + 1/2) L + u), L = 2^bits - 1, of the shape and type of w. Zhou et al., DoReFa-Net, 2016, Equation 12.

    a: the scale, of no axis; u: of the shape of w, uniform on [-1/2, 1/2), which makes the result unbiased for |w| <= a. k is held within 0..L:
    a bias may be beyond the scale of its weight. Where a is 0, w stays as it is.
    """
    levels, top = 2**bits - 1, a.double()
    k = (
        ((w.double() / (2 * torch.where(top > 0, top, 1.0)) + 0.5) * levels + u)
        .round()
        .clamp(0, levels)
    )
    return torch.where(top > 0, 2 * top * (k / levels - 0.5), w.double()).to(w.dtype)
