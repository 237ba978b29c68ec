"""Ways from the input of a model to each output, through numbers that belong to its class."""

from collections.abc import Callable

import torch
from torch import Tensor

from ..tree import Tree

# {weight: [r] the place of a number that class i must have}, so that a way leads from the input to
# output i
Pins = dict[str, Tensor]


def chain(models: Tree, kinds: dict[str, str], r: int) -> list[str]:
    """Return weights of convolutions and linear layers from the input to r outputs, where each
    takes what the one before gives (an image flattened: each channel times its pixels).

    The list is empty where their shapes do not fit so, as in a residual network: no way is looked
    for there.
    """
    layers = [name for name, kind in kinds.items() if kind in ("conv", "linear")]
    names = [name for name in layers if name in models and models[name].dim() >= 2]
    width = None
    for name in names:
        given, is_conv = models[name].shape[1], models[name].dim() > 2
        if width is not None and given != width and (is_conv or given % width):
            return []
        width = models[name].shape[0]
    return names if width == r else []


def has_way(ways: list[str], mask: Callable[[str, int], Tensor], i: int) -> bool:
    """Return whether the input reaches output i through numbers in mask(name, i) of each weight."""
    reached: Tensor | None = None
    for name in ways:
        there = mask(name, i)
        if there.dim() > 2:
            there = there.flatten(2).any(2)
        if reached is not None:
            there = there & reached.repeat_interleave(there.shape[1] // len(reached))
        reached = there.any(1)
    return reached is not None and bool(reached[i])


def force_ways(ways: list[str], models: Tree, r: int) -> Pins:
    """Return a way for every class, no number on two of them, from the output back to the input.

    In the order of the units that they have to reach, classes take the units below in turn: c units
    get ceil(r / c) classes at most, and a row of a weight has as many numbers, since the weight has
    r or more.
    """
    pins: Pins = {}
    ends = torch.arange(r)  # the unit that class i has to reach
    for name, before in zip(reversed(ways), [*reversed(ways[:-1]), None], strict=True):
        given, size = models[name].shape[1], models[name][0, 0].numel()
        units = models[before].shape[0] if before else given
        group = given // units  # inputs that one unit of the layer below gives
        turn = torch.argsort(torch.argsort(ends, stable=True))
        # how many classes before it have to reach the same unit
        rivals = torch.stack([(ends[:i] == end).sum() for i, end in enumerate(ends)])
        slot = rivals // units  # classes before it at that unit, by rounds
        below = turn % units
        if models[name].numel() >= r:
            source = below * group + slot % group  # the input that the class takes
            at = (ends * given + source) * size + slot // group
            pins[name] = at.to(models[name].device)
        ends = below
    return pins
