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
    takes the output of the one before (an image flattened: each channel times its pixels).

    The list is empty where their shapes do not fit so, as in a residual network: no way is looked
    for there.
    """
    layers = [name for name, kind in kinds.items() if kind in ("conv", "linear")]
    names = [name for name in layers if name in models and models[name].dim() >= 2]
    width = None  # outputs of the layer before
    for name in names:
        n_inputs = models[name].shape[1]
        is_conv = models[name].dim() > 2
        if width is not None and not _fits(n_inputs, width, is_conv):
            return []
        width = models[name].shape[0]
    return names if width == r else []


def _fits(n_inputs: int, width: int, is_conv: bool) -> bool:
    """Return whether a layer can take the `width` outputs of the one before.

    A linear layer may take an image flattened: a multiple of the channels.
    """
    if is_conv:
        return n_inputs == width
    return n_inputs % width == 0


def has_way(ways: list[str], mask: Callable[[str, int], Tensor], i: int) -> bool:
    """Return whether the input reaches output i through numbers in mask(name, i) of each weight."""
    reached: Tensor | None = None
    for name in ways:
        there = mask(name, i)  # [out, in, ...]
        if there.dim() > 2:
            there = there.flatten(2).any(2)  # any place of a kernel will do
        if reached is not None:
            group = there.shape[1] // len(reached)  # inputs that come from one unit below
            there = there & reached.repeat_interleave(group)
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
        n_inputs = models[name].shape[1]
        size = models[name][0, 0].numel()  # of a kernel; 1 in a linear layer
        units = models[before].shape[0] if before else n_inputs
        group = n_inputs // units  # inputs that come from one unit of the layer below
        # the rank of each class among all, sorted by the unit that it has to reach
        turn = torch.argsort(torch.argsort(ends, stable=True))
        # how many classes before it have to reach the same unit
        rivals = torch.stack([(ends[:i] == end).sum() for i, end in enumerate(ends)])
        slot = rivals // units  # classes before it at that unit, by rounds
        below = turn % units
        if models[name].numel() >= r:
            source = below * group + slot % group  # the input that the class takes
            at = (ends * n_inputs + source) * size + slot // group
            pins[name] = at.to(models[name].device)
        ends = below
    return pins
