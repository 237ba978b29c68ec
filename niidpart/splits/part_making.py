"""Parts made of who owns which row, and how many examples of each class their parties have."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.deal import tally
from ..arithmetic.rng import Ints
from ..arithmetic.sorting import sort_by_key, sort_pairs
from ..disk.arrays import release_pages
from ..disk.progress import tell_many
from .part import Part, build_checked_part
from .view import RowIds

_BLOCK = 1 << 18  # rows looked at at a time
_CACHED = 1 << 16  # rows counted at a time
_RELEASED = 1 << 22  # rows after which those in a file are given back
_INT32_ROWS = 1 << 31  # row numbers below fit in int32, which takes half the memory


def make_part(owner: NDArray[Any], labels: Ints, n_parties: int, n_classes: int) -> Part:
    """Return the Part in which each example belongs to `owner` [N] (-1: to nobody).

    Rows come out ascending, so that equal splits have equal digests.
    """
    n_owners = n_parties
    if owner.min() < 0:  # nobody's examples stand behind the last party
        n_owners += 1
        owner = np.where(owner < 0, n_parties, owner)
    counts = _count_owned(owner, labels, n_owners, n_classes)[:n_parties]
    indptr = _end_at(counts.sum(axis=1, dtype=np.int64))
    rows = sort_by_key(owner, n_owners)[: indptr[-1]]
    return build_checked_part(indptr, _narrow(rows, len(labels)), counts)


def make_part_from_pairs(
    party: Ints,
    row: Ints,
    labels: Ints,
    n_parties: int,
    n_classes: int,
) -> Part:
    """Return the Part in which `party[i]` holds `row[i]`, for all i; parties may share rows."""
    indptr = _end_at(tally(party, n_parties))
    rows = sort_pairs(party, row, n_parties, len(labels))
    indices = _narrow(rows, len(labels))
    counts = count_classes(indptr, indices, labels, n_classes)
    return build_checked_part(indptr, indices, counts)


def _end_at(sizes: Ints) -> Ints:
    """Return [P+1] where the rows of each party begin, of parties of these sizes."""
    indptr = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, dtype=np.int64, out=indptr[1:])
    return indptr


def _narrow(rows: NDArray[Any], n: int) -> RowIds:
    """Return rows of a data set of n examples in the type that their numbers need."""
    if n < _INT32_ROWS:
        return rows.astype(np.int32, copy=False)
    return rows.astype(np.int64, copy=False)


def _count_owned(
    owner: NDArray[Any], labels: Ints, n_owners: int, n_classes: int
) -> NDArray[np.int32]:
    """Return [n_owners, K] what `count_classes` does, of rows in the data set's own order.

    Several times as fast, since no label is looked up. owner: [N].
    """
    counts = np.zeros((n_owners, n_classes), np.int32)
    one = np.int32(1)  # of the table's own type: else numpy takes its slow way
    for start in range(0, len(owner), _CACHED):
        some = slice(start, start + _CACHED)
        cells = owner[some] * np.int64(n_classes)
        cells += labels[some]
        np.add.at(counts.reshape(-1), cells, one)
    return counts


def count_classes(indptr: Ints, indices: RowIds, labels: Ints, n_classes: int) -> NDArray[np.int32]:
    """Return [P, K] int32 examples of each class at each party. labels: [N] of the whole data set.

    Works on a block of rows at a time, so that temporaries stay small.
    """
    n = len(indices)
    n_parties = len(indptr) - 1
    counts = np.zeros((n_parties, n_classes), np.int32)
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        if start % _RELEASED == 0:
            release_pages(indices)
        # The block has rows of the parties first..last-1, of some of them not all.
        first = np.searchsorted(indptr, start, side="right") - 1
        last = np.searchsorted(indptr, stop)
        n_here = last - first
        bounds = np.clip(indptr[first : last + 1], start, stop)
        sizes_here = np.diff(bounds)
        party = np.repeat(np.arange(n_here), sizes_here)
        classes = labels[indices[start:stop]]
        # A table [n_here, K] as one row of cells: one bincount for all of it.
        cells = party * n_classes + classes
        found = np.bincount(cells, minlength=n_here * n_classes)
        table = found.reshape(-1, n_classes)
        counts[first:last] += table.astype(np.int32)
        tell_many("counting classes of parties", stop, n)
    return counts
