"""The weights of a stack, and what is like them, as a row for each job: [J, D].

What is done to each number by itself (an affine correction, an optimiser's step, holding jobs that
have ended) is then done to one tensor, however many parameters there are.
"""

import math
from typing import Any

import torch
from torch import Tensor

from ... import tree
from ...directions.affine import Affine
from ...flat_tree import RowLayout
from ...tree import Tree

# Numbers between the beginnings of two parameters are a multiple of this: kernels load 16 bytes at
# once, and the fastest ones ask that their operands begin there.
_ALIGNED = 32
# Under this name a row stands in a tree of one leaf, which goes where a tree of weights does.
ROW = "row"


def can_lie_in_rows(weights: Tree) -> bool:
    """Return whether all leaves are of one type, and none lies deeper."""
    types = set()
    for leaf in weights.values():
        if isinstance(leaf, dict):
            return False
        types.add(leaf.dtype)
    return len(types) == 1


class WeightRows:
    """Trees like the weights of J jobs, laid in rows. What lies between parameters stays 0."""

    def __init__(self, like: Tree):
        """like: weights [J, ...]."""
        sizes: list[int] = []
        leaves: list[tuple[str, int, torch.Size]] = []
        for name, leaf in like.items():
            _, *shape = leaf.shape
            size = math.prod(shape)
            place = len(sizes)
            leaves.append((name, place, torch.Size(shape)))
            sizes.append(size)
            sizes.append(-size % _ALIGNED)
        self._layout = RowLayout(sizes, leaves)
        self._like, *_ = like.values()
        self._made: dict[str, tuple[Tensor, Tree]] = {}

    def make(self, *axes: int, value: float = 0.0) -> Tensor:
        """Return rows [*axes, D]."""
        width = sum(self._layout.sizes)
        rows: Tensor = self._like.new_full((*axes, width), value)
        return rows

    def cut(self, rows: Tensor) -> Tree:
        """Return the tree of which these are the rows: views."""
        return self._layout.cut(rows)

    def lay(self, name: str, values: Tree, n: int) -> Tree:
        """Return the tree of one leaf, the rows [n, D] of a tree [n, ...], {} for {}.

        In memory that is kept under that name, and made when it is first asked for.
        """
        if not values:
            return {}
        if name not in self._made:
            made = self.make(len(self._like))
            self._made[name] = made, self.cut(made)
        rows, leaves = self._made[name]
        into = [leaf[:n] for leaf in leaves.values()]
        ordered = [values[path] for path in leaves]
        torch._foreach_copy_(into, ordered)
        return {ROW: rows[:n]}

    def lay_terms(self, terms: Affine) -> Affine:
        """Return the terms of J jobs in rows. Numbers of jobs [J] become columns [J, 1]."""
        laid: dict[str, Any] = {}
        for name, value in terms._asdict().items():
            laid[name] = value
            if isinstance(value, Tensor):
                column = value.to(self._like.dtype)
                laid[name] = column.reshape(-1, 1)
            elif isinstance(value, dict):
                rest = 1.0 if name == "scale" else 0.0
                laid[name] = self._lay_whole(value, rest)
        return Affine(**laid)

    def _lay_whole(self, values: Tree, rest: float) -> Tree:
        """Return the rows of a tree like some of the weights; `rest` stands for the others."""
        if not values:
            return {}
        rows = self.make(len(self._like), value=rest)
        leaves = self.cut(rows)
        tree.map(lambda leaf, into: into.copy_(leaf), values, leaves)
        return {ROW: rows}
