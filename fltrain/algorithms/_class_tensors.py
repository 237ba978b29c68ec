"""FedMOC's tensors Delta(1..r), one for each class, with entries in 0..1. Cha, Chang, Information 2025, appendix A.

Shared out among the classes are the weights, one parameter at a time. Everywhere else Delta(i) is 1 for every class: norm layers, biases (but that
of the output, whose entry i belongs to class i), and a parameter that has fewer numbers than there are classes.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from ..draws import key, order, uniform
from ..tree import Tree

_TRIES = 100
Pins = dict[
    str, Tensor
]  # {weight: [r] the place of a number that class i must have}, so that a way leads from the input to output i


def disjoint(models: Tree, kinds: dict[str, str], r: int, seed: int, delta_min: float) -> Tree:
    """{"class": {name: id of the class that each number belongs to}, "delta": {name: its coefficient}}; no "delta" where delta_min is 1: all are 1.

    The supports are disjoint, so the tensors are orthogonal. Of a weight of n numbers each class gets n // r or one more, at random. Coefficients
    are uniform on (delta_min, 1]. models: those of one row, without the axis M.
    """
    kind = torch.uint8 if r <= 256 else torch.int32
    ways = chain(models, kinds, r)
    names = shared_out(models, kinds, r)

    def draw(attempt: int, pins: Pins) -> Tree:
        return {
            name: _dealt(
                order(key(seed, "fedmoc", attempt), i, models[name].numel(), models[name].device),
                r,
                pins.get(name),
            )
            .reshape(models[name].shape)
            .to(kind)
            for i, name in enumerate(names)
        }

    classes = _with_ways(draw, lambda drawn, name, i: drawn[name] == i, ways, models, r)
    out = {
        "class": classes
        | {
            name: torch.arange(r, device=models[name].device).to(kind)
            for name in _output_bias(models, kinds, r)
        }
    }
    if delta_min < 1:
        spread = 1 - delta_min
        out["delta"] = {
            name: 1 - spread * _uniform(seed, "delta", i, 1, models[name])[0].to(models[name].dtype)
            for i, name in enumerate(names)
        }
    return out


def gram_schmidt(
    models: Tree, kinds: dict[str, str], r: int, seed: int, normalise: Callable[[Tensor], Tensor]
) -> Tree:
    """{"delta": {name: [r, ...]}}: r random tensors, orthogonal by Gram-Schmidt, then each brought to 0..1, which makes them similar again.

    normalise: [r, n] -> [r, n]. The random numbers are uniform on [0, 1): the text does not say which.
    """
    ways = chain(models, kinds, r)
    names = shared_out(models, kinds, r)

    def draw(attempt: int, pins: Pins) -> Tree:
        out = {}
        for i, name in enumerate(names):
            delta = normalise(orthonormal(_uniform(seed, attempt, i, r, models[name])))
            if name in pins:
                delta[torch.arange(r), pins[name]] = 1.0
            out[name] = delta.reshape(r, *models[name].shape).to(models[name].dtype)
        return out

    delta = _with_ways(draw, lambda drawn, name, i: drawn[name][i] > 0, ways, models, r)
    return {
        "delta": delta
        | {
            name: torch.eye(r, dtype=models[name].dtype, device=models[name].device)
            for name in _output_bias(models, kinds, r)
        }
    }


NORMALISE: dict[str, Callable[[Tensor], Tensor]] = {
    "minmax": lambda v: (
        (v - v.amin(1, keepdim=True)) / (v.amax(1, keepdim=True) - v.amin(1, keepdim=True))
    ),
    "abs": lambda v: v.abs() / v.abs().amax(1, keepdim=True),
    "clip": lambda v: v.clamp(min=0) / v.amax(1, keepdim=True),
}


def shared_out(models: Tree, kinds: dict[str, str], r: int) -> list[str]:
    """The parameters whose numbers are shared out among r classes."""
    return [
        name
        for name, kind in kinds.items()
        if name in models and kind not in ("norm", "bias") and models[name].numel() >= r
    ]


def orthonormal(vectors: Tensor) -> Tensor:
    """Rows [r, n] in float64, by Gram-Schmidt in their order; what is projected is taken off twice, so that rounding does not add up."""
    out = vectors.clone()
    for i, v in enumerate(out):
        for _ in range(2):
            v = v - (out[:i] @ v) @ out[:i]
        out[i] = v / v.norm()
    return out


def chain(models: Tree, kinds: dict[str, str], r: int) -> list[str]:
    """Weights of convolutions and linear layers from the input to r outputs, where each takes what the one before gives (an image flattened: each
    channel times its pixels). Empty where their shapes do not fit so, as in a residual network: no way is looked for there."""
    names = [
        name
        for name, kind in kinds.items()
        if name in models and kind in ("conv", "linear") and models[name].dim() >= 2
    ]
    width = None
    for name in names:
        given = models[name].shape[1]
        if width is not None and given != width and (models[name].dim() > 2 or given % width):
            return []
        width = models[name].shape[0]
    return names if width == r else []


def leads(ways: list[str], mask: Callable[[str], Tensor]) -> Tensor:
    """[r] bool: the outputs that the input reaches through numbers that are in the mask."""
    reached: Tensor | None = None
    for name in ways:
        there = mask(name)
        there = there.flatten(2).any(2) if there.dim() > 2 else there
        if reached is not None:
            there = there & reached.repeat_interleave(there.shape[1] // len(reached))
        reached = there.any(1)
    return reached if reached is not None else torch.ones(0, dtype=torch.bool)


def forced(ways: list[str], models: Tree, r: int) -> Pins:
    """A way for every class, no number on two of them, from the output back to the input.

    In the order of the units that they have to reach, classes take the units below in turn: c units get ceil(r / c) classes at most, and a row
    of a weight has as many numbers, since the weight has r or more.
    """
    pins: Pins = {}
    ends = torch.arange(r)  # the unit that class i has to reach
    for name, before in zip(reversed(ways), [*reversed(ways[:-1]), None], strict=True):
        given, size = models[name].shape[1], models[name][0, 0].numel()
        units = models[before].shape[0] if before else given
        group = given // units  # inputs that one unit of the layer below gives
        turn = torch.argsort(torch.argsort(ends, stable=True))
        slot = (
            torch.tensor([int((ends[:i] == end).sum()) for i, end in enumerate(ends)]) // units
        )  # classes before it at that unit, by rounds
        below = turn % units
        if models[name].numel() >= r:
            at = (ends * given + below * group + slot % group) * size + slot // group
            pins[name] = at.to(models[name].device)
        ends = below
    return pins


def _with_ways(
    draw: Callable[[int, Pins], Tree],
    mask: Callable[[Tree, str, int], Tensor],
    ways: list[str],
    models: Tree,
    r: int,
) -> Tree:
    """The first draw in which a way leads to output i through Delta(i), for every class i; after 100 draws one with a way put in by force."""
    for attempt in range(_TRIES):
        drawn = draw(attempt, {})
        if not ways or all(_has_way(drawn, mask, ways, models, i) for i in range(r)):
            return drawn
    return draw(_TRIES, forced(ways, models, r))


def _has_way(
    drawn: Tree, mask: Callable[[Tree, str, int], Tensor], ways: list[str], models: Tree, i: int
) -> bool:
    return bool(
        leads(
            ways,
            lambda name: (
                mask(drawn, name, i)
                if name in drawn
                else torch.ones_like(models[name], dtype=torch.bool)
            ),
        )[i]
    )


def _dealt(places: Tensor, r: int, pins: Tensor | None) -> Tensor:
    """[n] class ids, dealt out in turn in the random order `places` [n]; class i has place pins[i]."""
    out = torch.empty_like(places)
    if pins is not None:
        out[pins] = torch.arange(r, device=places.device)
        places = places[~torch.isin(places, pins)]
    out[places] = torch.arange(len(places), device=places.device) % r
    return out


def _uniform(seed: int, name: str | int, i: int, rows: int, like: Tensor) -> Tensor:
    """[rows, n] or, of one row, [1, ...] float64, uniform on [0, 1)."""
    drawn = uniform(key(seed, "fedmoc", name, i), rows * like.numel(), like.device).double()
    return drawn.reshape(1, *like.shape) if rows == 1 else drawn.reshape(rows, like.numel())


def _output_bias(models: Tree, kinds: dict[str, str], r: int) -> list[str]:
    """The bias of the last layer, if it has one of r numbers."""
    weights = [
        name for name, kind in kinds.items() if name in models and kind in ("conv", "linear")
    ]
    name = f"{weights[-1].removesuffix('weight')}bias" if weights else ""
    return [name] if name in models and kinds[name] == "bias" and models[name].shape == (r,) else []
