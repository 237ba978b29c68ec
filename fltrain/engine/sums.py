"""Sums of uploads that do not depend on the order in which they are added."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from niidpart.errors import UsageError

from .. import tree
from ..flat_tree import FlatTree, RowLayout
from ..tree import Tree

# (high, low, value) -> None: adds the value to the pair, in place.
AddPair = Callable[[Tensor, Tensor, Tensor], None]
# Numbers of a block whose operands and temporaries stay in the cache.
_BLOCK = 1 << 14


class _SummedRows(NamedTuple):
    """Pairs [M, n] of uploads that lie in rows."""

    layout: RowLayout
    high: Tensor
    low: Tensor


class Sums:
    """The uploads of a round summed per model, [M, ...], as pairs of float64.

    Of each pair, `high` is the sum rounded and `low` the sum of what that rounding lost. Knuth's
    two-sum finds the loss of one addition exactly (Knuth, The Art of Computer Programming 2, 4.2.2;
    Shewchuk 1997, Theorem 7), so a pair holds the running sum to about 106 bits, and `total`
    rounds it to 53 bits once.

    Only the additions to `low` can be rounded, by about 2^-106 of the largest sum on the way, and
    they are exact where the uploads lie within a factor of 2^50 of each other. Two orders of the
    same uploads (other workers, chunks, ranks) then have the same `total`. Beyond that they differ
    only where the exact sum lies that near to the middle between two float64 numbers, about one
    time in 2^50, or where the uploads cancel to less than 2^-50 of the largest of them.
    """

    def __init__(self, n_models: int):
        self.n_models = n_models
        self.high: dict[str, Tensor] = {}  # by path of the leaf
        self.low: dict[str, Tensor] = {}
        # Paths of the empty trees of uploads, from the first upload that has some. They have no
        # numbers to sum, but `aggregate` looks them up: total["buffers"] is {} for a model that has
        # no buffers.
        self.empty: list[str] = []
        # By key of the upload: pairs of which those above are views.
        self._rows: dict[str, _SummedRows] = {}

    def add(self, upload: Tree, model: int, add_pair: AddPair | None = None) -> None:
        """Add one job's upload to the sums of a model. {} adds nothing.

        add_pair: another way to do what `two_sum` does, with the same bits. UsageError where a
        tensor has another shape than that of an earlier job.
        """
        add_pair = add_pair or two_sum
        self.empty = self.empty or tree.empties(upload)
        rest: Tree = {}
        for key, value in upload.items():
            row = value.row if isinstance(value, FlatTree) else None
            if row is not None and self._has_rows(key, row, value.layout):
                add_pair(self._rows[key].high[model], self._rows[key].low[model], row)
            else:
                rest[key] = value
        for path, value in tree.flatten(rest).items():
            if path not in self.high:
                shape = (self.n_models, *value.shape)
                self.high[path] = torch.zeros(shape, dtype=torch.float64, device=value.device)
                self.low[path] = torch.zeros_like(self.high[path])
            high, low = self.high[path][model], self.low[path][model]
            if value.shape != high.shape:
                raise UsageError(
                    f"one job uploads {path} of the shape {tuple(value.shape)}, another one of "
                    f"{tuple(high.shape)}; an algorithm's `finish` has to return the same shapes "
                    "for all jobs, since they are summed"
                )
            add_pair(high, low, value)

    def _has_rows(self, key: str, row: Tensor, layout: RowLayout) -> bool:
        """Return whether uploads that lie so are summed as rows. The first upload decides."""
        if key in self._rows:
            return self._rows[key].layout == layout
        paths = {name: f"{key}/{name}" for name, _, _ in layout.leaves}
        if any(path in self.high for path in paths.values()):
            return False
        shape = (self.n_models, row.numel())
        high = torch.zeros(shape, dtype=torch.float64, device=row.device)
        low = torch.zeros_like(high)
        for half, rows in ((self.high, high), (self.low, low)):
            half |= {paths[name]: leaf for name, leaf in layout.cut(rows).items()}
        self._rows[key] = _SummedRows(layout, high, low)
        return True

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
        flat = {}
        for path, high in self.high.items():
            flat[path] = high + self.low[path]
        return tree.unflatten(flat, self.empty)


def two_sum(high: Tensor, low: Tensor, value: Tensor) -> None:
    """Add a value to a pair, in place: high is rounded, low takes what that lost (two-sum).

    value: of any type; it is added as float64. In blocks on a CPU: every operation on all of a
    large tensor would fetch it from memory again.
    """
    is_plain = high.is_contiguous() and low.is_contiguous() and high.device.type == "cpu"
    if high.numel() <= _BLOCK or not is_plain:
        _add_block(high, low, value)
        return
    pieces = []
    for numbers in (high.view(-1), low.view(-1), value.reshape(-1)):
        pieces.append(torch.split(numbers, _BLOCK))
    for block in zip(*pieces, strict=True):
        _add_block(*block)


def _add_block(high: Tensor, low: Tensor, value: Tensor) -> None:
    """Do what `two_sum` says.

    No compiler and no kernel may reorder these lines: algebraically low would stay what it is.
    """
    value = value.double()
    total = high + value
    added = total - high
    low += (high - (total - added)) + (value - added)
    high.copy_(total)
