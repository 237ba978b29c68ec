"""Trees of many jobs: values that have an axis of jobs, and `in_dims` that say which do (0) and which are one for all (None)."""

from typing import Any

import torch
from torch import Tensor

from ... import tree
from ...tree import Tree


def as_tensors(value: Any, device: torch.device) -> Any:
    """A tree with tensors for numbers: `vmap` takes nothing else back."""
    if isinstance(value, dict):
        return {k: as_tensors(v, device) for k, v in value.items()}
    return value if isinstance(value, Tensor) else torch.tensor(value, device=device)


def leading_axes(value: Any) -> Any:
    """An axis at every leaf."""
    return tree.map(lambda _: 0, value) if isinstance(value, dict) else 0  # type: ignore[arg-type,return-value]


def describe_form(value: Tree) -> set[tuple[str, torch.dtype | None, tuple[int, ...]]]:
    """Paths, types and shapes of one job's leaves, and where the tree is empty."""
    leaves = {
        (path, leaf.dtype, tuple(leaf.shape[1:])) for path, leaf in tree.flatten(value).items()
    }
    return leaves | {(path, None, ()) for path in tree.empties(value)}


def map_batched(value: Any, dims: Any, f: Any) -> Any:
    """f of the leaves that have an axis."""
    if isinstance(value, dict):
        return {k: map_batched(v, dims[k], f) for k, v in value.items()}
    return value if dims is None else f(value)


def copy_expanded(value: Tree, dims: Tree, n: int) -> Tree:
    """A copy with axis n everywhere, in memory of its own."""
    full = tree.map(lambda leaf, d: leaf if d == 0 else leaf.expand(n, *leaf.shape), value, dims)
    return tree.map(lambda leaf: leaf.detach().clone(memory_format=torch.contiguous_format), full)


def stack_trees(trees: list[Tree]) -> Tree:
    return tree.map(lambda *leaves: torch.stack(leaves), *trees)


def merge_shared(trees: list[Tree]) -> tuple[Tree, Tree]:
    """One leaf where all have the same tensor, or the same number on the host; else stacked."""

    def alike(leaves: tuple[Tensor, ...]) -> bool:
        first = leaves[0]
        host = first.numel() == 1 and first.device.type == "cpu"
        return all(leaf is first or (host and torch.equal(leaf, first)) for leaf in leaves)

    dims = tree.map(lambda *leaves: None if alike(leaves) else 0, *trees)  # type: ignore[arg-type,return-value]
    return _merged(trees, dims), dims


def _merged(trees: list[Tree], dims: Tree) -> Tree:
    return {
        k: _merged([t[k] for t in trees], d)
        if isinstance(d, dict)
        else trees[0][k]
        if d is None
        else torch.stack([t[k] for t in trees])
        for k, d in dims.items()
    }


def merge_numbers(hypers: list[Tree], like: Tensor) -> tuple[Tree, Tree]:
    """Numbers that are equal stay as they are; others [J], in the type of the weights, which an operation with them then keeps."""
    values, dims = {}, {}
    for name, first in hypers[0].items():
        column = [hyper[name] for hyper in hypers]
        alike = all(value is first or value == first for value in column)
        values[name] = (
            first if alike else torch.tensor(column, dtype=like.dtype, device=like.device)
        )
        dims[name] = None if alike else 0
    return values, dims


def align_axes(numbers: Tensor, like: Tensor) -> Tensor:
    """[A] as [A, 1, ...], in the type of `like` [A, ...]."""
    return numbers.to(like.dtype).view(-1, *[1] * (like.dim() - 1))


def copy_into(into: Tree, new: Tree, n: int) -> None:
    """into[:n] = new, but for leaves that came back untouched."""

    def write(old: Tensor, leaf: Tensor) -> Tensor:
        if leaf.data_ptr() != old.data_ptr() or leaf.stride() != old.stride():
            old[:n].copy_(leaf)
        return old

    tree.map(write, into, new)
