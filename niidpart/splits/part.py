"""One part of a split (train, val or test) in memory: which rows each party holds."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.deal import tally
from ..arithmetic.rng import Ints
from ..errors import UsageError
from .view import RowIds

PARTS = ("train", "val", "test")
_BLOCK = 1 << 18  # rows looked at at a time


@dataclass(frozen=True, eq=False)
class Part:
    """The examples of each party in one part of a split. All arrays are read-only.

    Parameters
    ----------
    indptr : [P+1] int64
        Where the rows of each party begin: party p holds ``indices[indptr[p]:indptr[p+1]]``.
    indices : [n] int32 or int64
        Rows of the data set, ascending within each party.
    counts : [P, K] int32
        Examples of class k at party p.

    Raises
    ------
    UsageError
        The arrays do not fit each other. The arrays themselves stay writable: the part holds
        read-only views of them.

    Examples
    --------
    >>> import numpy as np
    >>> from niidpart import Part
    >>> part = Part(
    ...     indptr=np.array([0, 2, 3]),
    ...     indices=np.array([4, 7, 1], np.int32),
    ...     counts=np.array([[1, 1], [0, 1]], np.int32),
    ... )
    >>> part.party(0)
    array([4, 7], dtype=int32)
    >>> part.sizes
    array([2, 1])
    """

    indptr: Ints
    indices: RowIds
    counts: NDArray[np.int32]

    def __post_init__(self) -> None:
        for name in ("indptr", "indices", "counts"):
            object.__setattr__(self, name, make_read_only(name, getattr(self, name)))
        if self.indptr.ndim != 1 or self.indptr.dtype != np.int64 or not len(self.indptr):
            raise UsageError(f"indptr is {_shape(self.indptr)}; int64[P+1] is needed")
        if self.indices.ndim != 1 or self.indices.dtype not in (np.int32, np.int64):
            raise UsageError(f"indices is {_shape(self.indices)}; int32[n] or int64[n] is needed")
        if self.counts.dtype != np.int32 or self.counts.shape[:-1] != (self.n_parties,):
            needed = f"int32[{self.n_parties}, K]"
            raise UsageError(f"counts is {_shape(self.counts)}; {needed} is needed")
        rises = bool((self.indptr[1:] >= self.indptr[:-1]).all())
        if self.indptr[0] != 0 or self.indptr[-1] != self.n or not rises:
            raise UsageError(f"indptr must rise from 0 to the {self.n} rows in indices")

    def party(self, p: int) -> RowIds:
        """Return the rows of party p, ascending: a view.

        Raises
        ------
        IndexError
            There is no such party.
        """
        require_party(p, self.n_parties)
        return self.indices[self.indptr[p] : self.indptr[p + 1]]

    def party_counts(self, p: int) -> NDArray[np.int32]:
        """Return [K], the examples of each class at party p. IndexError where there is none."""
        require_party(p, self.n_parties)
        counts: NDArray[np.int32] = self.counts[p]
        return counts

    def __iter__(self) -> Iterator[RowIds]:
        return (self.party(p) for p in range(self.n_parties))

    @property
    def n(self) -> int:
        """Examples in this part, over all parties."""
        return len(self.indices)

    @property
    def n_parties(self) -> int:
        return len(self.indptr) - 1

    @property
    def sizes(self) -> Ints:
        """[P] int64 examples of each party."""
        return np.diff(self.indptr)

    @cached_property
    def digest(self) -> str:
        """sha256 over indptr then indices, as little-endian int64."""
        state = hashlib.sha256(self.indptr.astype("<i8").tobytes())
        for start in range(0, len(self.indices), _BLOCK):
            state.update(self.indices[start : start + _BLOCK].astype("<i8").tobytes())
        return state.hexdigest()


def require_party(p: int, n_parties: int) -> None:
    """Raise IndexError where there is no party p."""
    if not 0 <= p < n_parties:
        raise IndexError(f"party {p} does not exist; the parties are 0..{n_parties - 1}")


def make_read_only(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view: the caller's own array stays as it is, and nothing is copied."""
    if not isinstance(array, np.ndarray):
        raise UsageError(f"{name} is {type(array).__name__}; a numpy array is needed")
    view = array.view()
    view.flags.writeable = False
    return view


def _shape(array: NDArray[Any]) -> str:
    return f"{array.dtype}{list(array.shape)}"


def make_empty_part(n_parties: int, n_classes: int) -> Part:
    """Return the Part that holds nothing."""
    zeros = np.broadcast_to(np.int32(0), (n_parties, n_classes))  # takes no memory
    return Part(np.zeros(n_parties + 1, np.int64), np.zeros(0, np.int32), zeros)


def make_part(owner: NDArray[Any], labels: Ints, n_parties: int, n_classes: int) -> Part:
    """Return the Part in which each example belongs to `owner` [N] (-1: to nobody).

    Rows come out ascending, so that equal splits have equal digests.
    """
    if owner.min() < 0:  # nobody's examples stand behind the last party
        owner = np.where(owner < 0, n_parties, owner)
    sizes = tally(owner, n_parties + 1)[:n_parties]
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    rows = _sort_by_owner(owner, n_parties)
    return _complete(indptr, rows[: indptr[-1]], labels, n_classes)


def _sort_by_owner(owner: NDArray[Any], n_parties: int) -> Ints:
    """Return all rows in order of their owner, ascending within one."""
    if n_parties < 1 << 16:  # numpy's stable sort of 16 bits is a radix sort
        return np.argsort(owner.astype(np.uint16), kind="stable")
    # Owner and row in one word each: words are unique, so every sorting routine gives one order.
    low = len(owner).bit_length()
    words = owner.astype(np.uint64)
    words <<= np.uint64(low)
    words |= np.arange(len(owner), dtype=np.uint64)
    words.sort()
    words &= np.uint64((1 << low) - 1)
    return words.view(np.int64)


def make_part_from_pairs(
    party: Ints, row: Ints, labels: Ints, n_parties: int, n_classes: int
) -> Part:
    """Return the Part in which `party[i]` holds `row[i]`, for all i; parties may share rows."""
    order = np.lexsort((row, party))
    sizes = np.bincount(party, minlength=n_parties)
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return _complete(indptr, row[order], labels, n_classes)


def _complete(indptr: Ints, rows: Ints, labels: Ints, n_classes: int) -> Part:
    indices: RowIds = rows.astype(np.int32) if len(labels) < 1 << 31 else rows
    return Part(indptr, indices, count_classes(indptr, indices, labels, n_classes))


def count_classes(indptr: Ints, indices: RowIds, labels: Ints, n_classes: int) -> NDArray[np.int32]:
    """Return [P, K] int32 examples of each class at each party. labels: [N] of the whole data set.

    Works on a block of rows at a time, so that temporaries stay small.
    """
    counts = np.zeros((len(indptr) - 1, n_classes), np.int32)
    for start in range(0, len(indices), _BLOCK):
        stop = min(start + _BLOCK, len(indices))
        first = np.searchsorted(indptr, start, side="right") - 1
        last = np.searchsorted(indptr, stop)  # the block has rows of parties first..last-1
        n_here = last - first
        ends = np.clip(indptr[first : last + 1], start, stop)
        party = np.repeat(np.arange(n_here), ends[1:] - ends[:-1])
        cells = party * n_classes + labels[indices[start:stop]]
        found = np.bincount(cells, minlength=n_here * n_classes)
        counts[first:last] += found.reshape(-1, n_classes).astype(np.int32)
    return counts


def count_holdings(parts: Iterable[Part], n: int) -> tuple[int, int]:
    """Return (distinct examples in the parts, rows that an earlier part has as well).

    n: examples of the data set. Memory grows with the rows held, not with n.
    """
    rows = [part.indices for part in parts]
    n_rows = sum(len(r) for r in rows)
    if n > 8 * n_rows + 65536:  # few of many are held: count them by their place among those held
        kept = np.unique(np.concatenate(rows))
        rows, n = [np.searchsorted(kept, r) for r in rows], len(kept)
    held, across = np.zeros(n, bool), 0
    for r in rows:
        across += int(np.count_nonzero(held[r]))
        held[r] = True
    return int(np.count_nonzero(held)), across
