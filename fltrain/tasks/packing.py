"""The tensors of unlike models in rows of one length, one row for each type of number."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..flat_tree import RowLayout
from ..tree import Tree

# Each tensor begins at a multiple of so many numbers, as in memory of its own: products of matrices
# may round otherwise elsewhere.
_ALIGNED = 16


class Packing(NamedTuple):
    """How the tensors of one model lie in rows.

    layouts: by type of number, such as "float32"; the model need not have all. lengths: of the rows
    of all models: what the longest needs, of which this one leaves the end at 0.
    """

    layouts: dict[str, RowLayout]
    lengths: dict[str, int]

    def pack(self, tensors: Mapping[str, Tensor], device: torch.device) -> Tree:
        """Return the rows."""
        rows: Tree = {}
        for kind, length in self.lengths.items():
            row = torch.zeros(length, dtype=getattr(torch, kind), device=device)
            if kind in self.layouts:
                for name, view in self._cut(kind, row).items():
                    view.copy_(tensors[name])
            rows[kind] = row
        return rows

    def unpack(self, rows: Mapping[str, Tensor]) -> Tree:
        """Return the tensors by their names: views."""
        tensors: Tree = {}
        for kind in self.layouts:
            tensors |= self._cut(kind, rows[kind])
        return tensors

    def _cut(self, kind: str, row: Tensor) -> Tree:
        layout = self.layouts[kind]
        return layout.cut(row[: sum(layout.sizes)])


def describe_packings(models: Sequence[Mapping[str, Tensor]]) -> tuple[Packing, ...]:
    """Return how the tensors of each model lie in rows of one length."""
    layouts = [_lay_out(tensors) for tensors in models]
    lengths: dict[str, int] = {}
    for of_model in layouts:
        for kind, layout in of_model.items():
            lengths[kind] = max(lengths.get(kind, 0), sum(layout.sizes))
    return tuple(Packing(of_model, lengths) for of_model in layouts)


def _lay_out(tensors: Mapping[str, Tensor]) -> dict[str, RowLayout]:
    layouts: dict[str, RowLayout] = {}
    for name, tensor in tensors.items():
        kind = str(tensor.dtype).removeprefix("torch.")
        layout = layouts.setdefault(kind, RowLayout(sizes=[], leaves=[]))
        layout.leaves.append((name, len(layout.sizes), tensor.shape))
        layout.sizes.extend([tensor.numel(), -tensor.numel() % _ALIGNED])
    return layouts
