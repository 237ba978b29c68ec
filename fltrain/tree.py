"""Pure functions over trees: nested dicts whose leaves are tensors. {} is "nothing"."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from niidpart.errors import UsageError

Tree = dict[str, Any]


def map(f: Callable[..., Tensor], tree: Tree, *others: Tree) -> Tree:
    """f of each leaf, and of the leaves that stand at the same place in the others."""
    return {
        k: map(f, v, *(o[k] for o in others))
        if isinstance(v, dict)
        else f(v, *(o[k] for o in others))
        for k, v in tree.items()
    }


def leaves(tree: Tree) -> list[Tensor]:
    """All leaves, in the order of the keys as they stand."""
    return [leaf for v in tree.values() for leaf in (leaves(v) if isinstance(v, dict) else [v])]


def index(tree: Tree, i: int) -> Tree:
    """Entry i of the leading axis of every leaf: a view."""
    return map(lambda leaf: leaf[i], tree)


def repeat(tree: Tree, n: int) -> Tree:
    """n copies along a new leading axis."""
    return map(lambda leaf: leaf.unsqueeze(0).repeat(n, *[1] * leaf.dim()), tree)


def clone(tree: Tree) -> Tree:
    return map(lambda leaf: leaf.detach().clone(), tree)


def zeros_like(tree: Tree) -> Tree:
    return map(torch.zeros_like, tree)


def nbytes(tree: Tree) -> int:
    """Bytes of the floating-point leaves, in their own type: what travels."""
    return sum(
        leaf.numel() * leaf.element_size() for leaf in leaves(tree) if leaf.is_floating_point()
    )


def flatten(tree: Tree, prefix: str = "") -> dict[str, Tensor]:
    """{"a/b": leaf}: one flat dict, as a checkpoint stores it."""
    flat: dict[str, Tensor] = {}
    for k, v in tree.items():
        if "/" in k:
            raise UsageError(f"the key {k!r} has a '/'; rename that parameter")
        flat |= flatten(v, f"{prefix}{k}/") if isinstance(v, dict) else {f"{prefix}{k}": v}
    return flat


def unflatten(flat: dict[str, Tensor], empty: list[str] | None = None) -> Tree:
    """The tree of a flat dict. empty: the paths of its empty trees, as `empties` gives them."""
    tree: Tree = {}
    for path, leaf in [*flat.items(), *((path, {}) for path in empty or [])]:
        *parents, last = path.split("/")
        node = tree
        for p in parents:
            node = node.setdefault(p, {})
        node[last] = leaf
    return tree


def empties(tree: Tree, prefix: str = "") -> list[str]:
    """["a/b"]: where the tree holds an empty tree."""
    out = []
    for k, v in tree.items():
        if isinstance(v, dict):
            out += empties(v, f"{prefix}{k}/") if v else [f"{prefix}{k}"]
    return out
