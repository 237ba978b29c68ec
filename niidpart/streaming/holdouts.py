"""Parties' own validation and test parts, on the disk: `making/holdouts.py` has them in memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints, stream
from ..arithmetic.words import Array
from ..disk.arrays import ArrayFile
from ..disk.progress import iterate_told, tell
from ..disk.sorting import SortedRuns
from ..making.holdouts import plan_cuts
from ..splits.part import PARTS
from ..splits.recipe import Recipe
from .owners import iterate_order

_PLACE_BITS = np.uint64(32)  # of a word whose upper half is a row or a cell
_PLACE_MASK = np.uint64((1 << 32) - 1)
_NOWHERE = np.iinfo(np.int32).max  # behind the last place


class HeldRows(NamedTuple):
    """Some rows that somebody owns, with their party and class."""

    rows: Ints
    party: Ints
    classes: Array

    @classmethod
    def of(cls, start: int, party: Array, labels: Array) -> Self:
        """Return those among the rows start, start + 1, ... party: of each, -1 for nobody."""
        held = np.flatnonzero(party >= 0)
        classes = labels[start : start + len(party)]
        return cls(held + start, party[held].astype(np.int64), classes[held])

    def select(self, here: NDArray[np.bool_]) -> Self:
        """Return some of them. here: [n]."""
        return type(self)(self.rows[here], self.party[here], self.classes[here])

    def number_cells(self, n_classes: int) -> Ints:
        """Return [n] party * K + class."""
        return self.party * n_classes + self.classes

    def add_to(self, counts: Array) -> None:
        """Count them. counts: [P, K]."""
        present, times = np.unique(self.number_cells(counts.shape[1]), return_counts=True)
        counts.reshape(-1)[present] += times.astype(counts.dtype)


class Divider:
    """Says of each row that somebody owns which part it is in.

    The rows of one class at one party, in a random order of all rows, go to test first, then to
    val, then to train. So the part of a row follows from its place in that order, and from the
    places at which val and train begin in its cell, which is its party and class.
    """

    def __init__(
        self,
        owner: Array,
        labels: Array,
        recipe: Recipe,
        n_classes: int,
        folder: Path,
    ):
        self._owner, self._labels, self._n_classes = owner, labels, n_classes
        self._folder = folder
        self._rng = stream(recipe.seed, "holdout")
        self._n_cells = recipe.n_parties * n_classes
        self._places = self._draw_places()
        counts = np.zeros((recipe.n_parties, n_classes), np.int32)
        for start, party in iterate_told(owner, "counting"):
            HeldRows.of(start, party, labels).add_to(counts)
        cuts = plan_cuts(counts, recipe.val, recipe.test, self._rng)
        n_test = np.zeros(self._n_cells, np.int64)
        n_test[cuts.cells] = cuts.n_test
        n_early = n_test.copy()  # what is in test or val
        n_early[cuts.cells] += cuts.n_val
        sizes = counts.reshape(-1).astype(np.int64)
        self._val_begins = np.full(self._n_cells, _NOWHERE, np.int32)
        self._train_begins = self._val_begins.copy()
        self._find_begins(sizes, ((n_test, self._val_begins), (n_early, self._train_begins)))

    def iterate(self) -> Iterator[tuple[HeldRows, Ints]]:
        """Go through (rows, [n] the number of the part of each)."""
        test, val, train = (PARTS.index(name) for name in ("test", "val", "train"))
        for held, cells, places in self._iterate_held("dividing"):
            which = np.full(len(cells), train)
            which[places < self._train_begins[cells]] = val
            which[places < self._val_begins[cells]] = test
            yield held, which

    def _iterate_held(self, what: str) -> Iterator[tuple[HeldRows, Ints, Array]]:
        """Go through (rows, their cells, their places in the random order), by row."""
        for start, party in iterate_told(self._owner, what):
            held = HeldRows.of(start, party, self._labels)
            yield held, held.number_cells(self._n_classes), self._places[held.rows]

    def _draw_places(self) -> Array:
        """Return [N] where each row stands in the random order."""
        n = len(self._owner)
        with SortedRuns(self._folder / "by_row") as by_row:
            start = 0
            order = self._rng.child("order")
            for rows in iterate_order(self._labels, 1, order, self._folder):
                words = rows.astype(np.uint64) << _PLACE_BITS
                words |= np.arange(start, start + len(rows), dtype=np.uint64)
                by_row.add(words)
                start += len(rows)
            places = ArrayFile(self._folder / "place", np.int32)
            for words in by_row.iterate():
                places.append((words & _PLACE_MASK).astype(np.int32))
                tell("sorting by row", places.n, n)
        return places.finish()

    def _find_begins(self, sizes: Ints, wanted: tuple[tuple[Ints, Array], ...]) -> None:
        """Note the places of some rows of each cell. wanted: (which row, where to note it)."""
        ends = np.cumsum(sizes, dtype=np.int64)
        with SortedRuns(self._folder / "by_cell") as by_cell:
            for _, cells, places in self._iterate_held("sorting by cell"):
                by_cell.add(cells.astype(np.uint64) << _PLACE_BITS | places.astype(np.uint64))
            start = 0
            for words in by_cell.iterate():
                # The cells that reach into this block, of which some began before it.
                first = int(np.searchsorted(ends, start, side="right"))
                last = int(np.searchsorted(ends, start + len(words))) + 1
                some = slice(first, last)
                for number, begins in wanted:
                    at = ends[some] - sizes[some] + number[some] - start
                    is_here = (number[some] < sizes[some]) & (at >= 0) & (at < len(words))
                    cells_here = np.flatnonzero(is_here) + first
                    found = words[at[is_here]] & _PLACE_MASK
                    begins[cells_here] = found.astype(np.int32)
                start += len(words)
