"""Sums of uploads that do not depend on the order in which they are added."""

import torch
from torch import Tensor

from .. import tree
from ..tree import Tree


class Sums:
    """The uploads of a round summed per model, [M, ...], as pairs of float64: the sum, and what rounding has taken from it.

    A pair holds about 106 bits, so that `total` is the exact sum rounded once, whatever the order, the worker, the chunk or the rank: exactly so
    where the numbers that are summed lie within a factor of 2^50 of each other, and but for one case in 2^50 beyond that. Knuth's two-sum.
    """

    def __init__(self, n_models: int):
        self.n_models = n_models
        self.high: dict[str, Tensor] = {}
        self.low: dict[str, Tensor] = {}
        self.empty: list[str] = []  # paths of the empty trees of uploads

    def add(self, upload: Tree, model: int) -> None:
        """Adds one job's upload to the sums of a model."""
        self.empty = self.empty or tree.empties(upload)
        for path, value in tree.flatten(upload).items():
            if path not in self.high:
                self.high[path] = torch.zeros(
                    (self.n_models, *value.shape), dtype=torch.float64, device=value.device
                )
                self.low[path] = torch.zeros_like(self.high[path])
            two_sum(self.high[path][model], self.low[path][model], value.double())

    def merge(self, other: "Sums") -> None:
        """Adds all that another has summed."""
        self.empty = self.empty or other.empty
        for path, value in other.high.items():
            if path not in self.high:
                self.high[path], self.low[path] = torch.zeros_like(value), torch.zeros_like(value)
            two_sum(self.high[path], self.low[path], value)
            self.low[path] += other.low[path]

    @property
    def total(self) -> Tree:
        """The sums, [M, ...] float64, as a tree of the uploads' form; {} where nothing was added."""
        return tree.unflatten(
            {path: high + self.low[path] for path, high in self.high.items()}, self.empty
        )


def two_sum(high: Tensor, low: Tensor, value: Tensor) -> None:
    """high + low += value, in place: high is rounded, low takes what that lost."""
    total = high + value
    added = total - high
    low += (high - (total - added)) + (value - added)
    high.copy_(total)
