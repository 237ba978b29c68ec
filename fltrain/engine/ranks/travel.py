"""What parties keep, as bytes in one tensor, and back."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ... import tree
from ...tree import Tree

_ALIGNED = 16  # bytes: a view as some type has to begin at a multiple of its size


class Form(NamedTuple):
    """Of a tree. leaves: (path, type, shape); empty: where it holds an empty tree."""

    leaves: tuple[tuple[str, torch.dtype, tuple[int, ...]], ...]
    empty: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """That it takes in the tensor."""
        return sum(_padded(dtype.itemsize * math.prod(shape)) for _, dtype, shape in self.leaves)


def describe_form(own: Tree) -> Form:
    return Form(
        tuple((path, leaf.dtype, tuple(leaf.shape)) for path, leaf in tree.flatten(own).items()),
        tuple(tree.empties(own)),
    )


def pack(owns: list[Tree], device: torch.device) -> Tensor:
    """[bytes] uint8: all leaves, one after another."""
    out = torch.zeros(
        sum(describe_form(own).nbytes for own in owns), dtype=torch.uint8, device=device
    )
    at = 0
    for leaf in (leaf for own in owns for leaf in tree.leaves(own)):
        data = leaf.detach().contiguous().flatten().view(torch.uint8)
        out[at : at + len(data)] = data
        at += _padded(len(data))
    return out


def unpack(form: Form, data: Tensor, at: int) -> Tree:
    """The tree that stands at byte `at`: views into `data`."""
    flat = {}
    for path, dtype, shape in form.leaves:
        n = dtype.itemsize * math.prod(shape)
        flat[path] = data[at : at + n].view(dtype).view(shape)
        at += _padded(n)
    return tree.unflatten(flat, list(form.empty))


def _padded(n: int) -> int:
    return -(-n // _ALIGNED) * _ALIGNED
