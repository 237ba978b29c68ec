"""Trees in memory that stays: made once, filled again in each round."""

from typing import Any

import torch
from torch import Tensor


def hold(value: Any, device: torch.device) -> Any:
    """Return a tree with copies of its tensors on the device; all else is as it is.

    Single numbers too, which a plan may have left on the host: a graph would repeat the first.
    """
    if isinstance(value, dict):
        return {name: hold(part, device) for name, part in value.items()}
    if not isinstance(value, Tensor):
        return value
    there = value.detach().to(device)
    return there.clone(memory_format=torch.contiguous_format)


def fill(held: Any, value: Any) -> None:
    """Write the tensors of a tree over those of one of the same form."""
    if isinstance(held, dict):
        for name, part in held.items():
            fill(part, value[name])
    elif isinstance(held, Tensor):
        held.copy_(value)


def describe_form(value: Any) -> Any:
    """Return what is equal in two trees that one memory does for.

    Types and shapes of tensors; of all else the value, which a graph has within it.
    """
    if isinstance(value, dict):
        return {name: describe_form(part) for name, part in value.items()}
    if isinstance(value, Tensor):
        return value.dtype, tuple(value.shape)
    return value
