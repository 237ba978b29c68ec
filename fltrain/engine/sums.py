"""Sums of uploads that do not depend on the order in which they are added."""

import torch
from torch import Tensor

from .. import tree
from ..tree import Tree


class Sums:
    """The uploads of a round summed per model, [M, ...], as pairs of float64.

    Of each pair, `high` is the sum and `low` what rounding has taken from it (Knuth's two-sum). A
    pair holds about 106 bits, so that `total` is the exact sum rounded once, whatever the order,
    the worker, the chunk or the rank: exactly so where the numbers that are summed lie within a
    factor of 2^50 of each other, and with one exception in 2^50 beyond that.
    """

    def __init__(self, n_models: int):
        self.n_models = n_models
        self.high: dict[str, Tensor] = {}  # by path of the leaf
        self.low: dict[str, Tensor] = {}
        self.empty: list[str] = []  # paths of the empty trees of uploads

    def add(self, upload: Tree, model: int) -> None:
        """Add one job's upload to the sums of a model."""
        self.empty = self.empty or tree.empties(upload)
        for path, value in tree.flatten(upload).items():
            if path not in self.high:
                shape = (self.n_models, *value.shape)
                self.high[path] = torch.zeros(shape, dtype=torch.float64, device=value.device)
                self.low[path] = torch.zeros_like(self.high[path])
            high, low = self.high[path], self.low[path]
            two_sum(high[model], low[model], value.double())

    def merge(self, other: "Sums") -> None:
        """Add all that another has summed."""
        self.empty = self.empty or other.empty
        for path, value in other.high.items():
            if path not in self.high:
                self.high[path] = torch.zeros_like(value)
                self.low[path] = torch.zeros_like(value)
            two_sum(self.high[path], self.low[path], value)
            self.low[path] += other.low[path]

    @property
    def total(self) -> Tree:
        """The sums, [M, ...] float64, as a tree of the uploads' form; {} where there are none."""
        flat = {path: high + self.low[path] for path, high in self.high.items()}
        return tree.unflatten(flat, self.empty)


def two_sum(high: Tensor, low: Tensor, value: Tensor) -> None:
    """Add a value to a pair, in place: high is rounded, low takes what that lost.

    No compiler and no kernel may reorder these lines: algebraically low would stay what it is.
    """
    total = high + value
    added = total - high
    low += (high - (total - added)) + (value - added)
    high.copy_(total)
