"""Trees whose leaves lie in one row, so that work on each number needs no loop over leaves."""

from collections.abc import Callable, Container, Mapping, Sequence
from functools import wraps
from operator import is_
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .tree import Tree


class RowLayout(NamedTuple):
    """How leaves lie in a row, one behind the other.

    sizes: numbers in each part of the row; leaves: name, part and shape of each, in the order of
    the tree, which is not that of the row.
    """

    sizes: list[int]
    leaves: list[tuple[str, int, torch.Size]]

    @classmethod
    def describe(cls, like: Mapping[str, Tensor], names: Sequence[str]) -> "RowLayout":
        """Return the layout of a tree without branches. names: in the order of the row."""
        part = {name: i for i, name in enumerate(names)}
        sizes = [like[name].numel() for name in names]
        return cls(sizes, [(name, part[name], leaf.shape) for name, leaf in like.items()])

    def cut(self, rows: Tensor) -> Tree:
        """Return the leaves of one row [n], or of several [..., n]: views."""
        parts = rows.split_with_sizes(self.sizes, dim=-1)
        front = rows.shape[:-1]
        return {name: parts[part].view(front + shape) for name, part, shape in self.leaves}

    def find_stretch(self, names: Container[str]) -> tuple[int, "RowLayout"] | None:
        """Return where these leaves begin, and how they lie from there; None for leaves apart."""
        leaves = [leaf for leaf in self.leaves if leaf[0] in names]
        parts = [part for _, part, _ in leaves]
        if not parts or max(parts) - min(parts) >= len(parts):
            return None
        first = min(parts)
        sizes = self.sizes[first : first + len(parts)]
        moved = [(name, part - first, shape) for name, part, shape in leaves]
        return sum(self.sizes[:first]), RowLayout(sizes, moved)


class FlatTree(dict[str, Any]):
    """A tree without branches, whose leaves are views into one row [n].

    It is a plain tree to everybody else, and a copy of it is one. The views are made when somebody
    first asks for a leaf or a name: rows that are only weighed and summed do without them.
    """

    def __init__(self, row: Tensor, layout: RowLayout):
        super().__init__()
        self.layout = layout
        self._row = row
        self._views: tuple[Tensor, ...] | None = None

    @property
    def row(self) -> Tensor | None:
        """All numbers; None where somebody has put another leaf into the tree."""
        if self._views is None:
            return self._row
        is_whole = len(self) == len(self._views) and all(map(is_, self.values(), self._views))
        return self._row if is_whole else None

    def cut(self) -> None:
        """Make the leaves, unless they have been made."""
        if self._views is None:
            leaves = self.layout.cut(self._row)
            super().update(leaves)
            self._views = tuple(leaves.values())  # last: who sees them, in a thread, has the leaves

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[Tree]]:
        """Let copies be plain trees: theirs are no views into the row."""
        return dict, (dict(self),)


def _cut_first(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of dicts as it is for a tree whose leaves may not have been made."""

    @wraps(method)
    def cut_first(self: FlatTree, *args: Any, **kwargs: Any) -> Any:
        self.cut()
        return method(self, *args, **kwargs)

    return cut_first


# All that reads or writes entries. Python's own code asks a dict with an `__iter__` of its own by
# these too, for `dict(tree)` as for `**tree`.
for _name in (
    *("__contains__", "__delitem__", "__eq__", "__getitem__", "__ior__", "__iter__", "__len__"),
    *("__ne__", "__or__", "__repr__", "__reversed__", "__ror__", "__setitem__"),
    *("clear", "copy", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"),
):
    setattr(FlatTree, _name, _cut_first(getattr(dict, _name)))


def map_numbers(f: Callable[[Tensor], Tensor], tree: Tree) -> Tree:
    """Return f of each leaf, as `tree.map`, where f does the same to each number of a tensor.

    Of leaves that lie in one row f is called once.
    """
    if isinstance(tree, FlatTree) and tree.row is not None:
        return FlatTree(f(tree.row), tree.layout)
    mapped: Tree = {}
    for key, value in tree.items():
        mapped[key] = map_numbers(f, value) if isinstance(value, dict) else f(value)
    return mapped


def leave_out(tree: Tree, names: Container[str]) -> Tree:
    """Return a tree without some leaves, in one row still where the others lie together."""
    kept = {name: leaf for name, leaf in tree.items() if name not in names}
    if len(kept) == len(tree):
        return tree
    if not isinstance(tree, FlatTree) or tree.row is None:
        return kept
    stretch = tree.layout.find_stretch(kept)
    if stretch is None:
        return kept
    begin, layout = stretch
    return FlatTree(tree.row[begin : begin + sum(layout.sizes)], layout)
