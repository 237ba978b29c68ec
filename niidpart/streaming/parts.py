"""Who owns what, in a file, becomes the parts of a split, whose rows lie in files."""

from pathlib import Path

import numpy as np

from ..arithmetic.words import Array
from ..disk.arrays import ArrayFile
from ..disk.progress import iterate_told, tell
from ..disk.sorting import SortedRuns
from ..splits.part import PARTS, Part, build_checked_part, make_empty_part
from ..splits.recipe import Recipe
from .holdouts import Divider, HeldRows


class PartBuilder:
    """One part: rows come with their party and class, in any order, and go party by party."""

    def __init__(self, name: str, n_parties: int, n_classes: int, n: int, folder: Path):
        self._name, self._folder = name, folder
        self._shape = (n_parties, n_classes)
        self._row_bits = np.uint64(max(n, 2).bit_length())
        self._counts = np.zeros(self._shape, np.int32)
        self._by_party = SortedRuns(folder / f"by_party_{name}")

    def add(self, held: HeldRows) -> None:
        held.add_to(self._counts)
        words = held.party.astype(np.uint64)
        words <<= self._row_bits
        words |= held.rows.astype(np.uint64)
        self._by_party.add(words)

    def finish(self) -> Part:
        sizes = self._counts.sum(axis=1, dtype=np.int64)
        indptr = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, dtype=np.int64, out=indptr[1:])
        n_rows = int(indptr[-1])
        row_mask = (np.uint64(1) << self._row_bits) - np.uint64(1)
        with self._by_party as by_party:
            indices = ArrayFile(self._folder / f"{self._name}_indices", np.int32)
            for words in by_party.iterate():
                indices.append((words & row_mask).astype(np.int32))
                tell(f"sorting {self._name} by party", indices.n, n_rows)
        if not n_rows:
            return make_empty_part(*self._shape)
        return build_checked_part(indptr, indices.finish(), self._counts)


def build_parts_on_disk(
    owner: Array,
    labels: Array,
    recipe: Recipe,
    n_classes: int,
    folder: Path,
) -> dict[str, Part]:
    """Return {"train", "val", "test": Part}, as `build_parts` does. owner, labels: [N]."""
    n, n_parties = len(owner), recipe.n_parties
    builders = {}
    for name in PARTS:
        builders[name] = PartBuilder(name, n_parties, n_classes, n, folder)
    if not recipe.val and not recipe.test:
        for start, party in iterate_told(owner, "dividing"):
            builders["train"].add(HeldRows.of(start, party, labels))
    else:
        divide = Divider(owner, labels, recipe, n_classes, folder)
        for held, which in divide.iterate():
            for i, name in enumerate(PARTS):
                builders[name].add(held.select(which == i))
    return {name: builder.finish() for name, builder in builders.items()}
