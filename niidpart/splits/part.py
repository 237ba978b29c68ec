"""One part of a split (train, val or test) in memory: which rows each party holds."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..disk.arrays import iterate_pieces
from ..disk.progress import tell_many
from ..errors import UsageError, require_type
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
        The arrays do not fit each other, rows of a party do not ascend, or the counts of a party
        do not sum to its size.

    Notes
    -----
    The arrays that are handed over stay writable: the part holds read-only views of them.

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
            view = make_read_only(name, getattr(self, name))
            object.__setattr__(self, name, view)  # frozen for everybody else
        _require_kind("indptr", self.indptr, ("int64",), 1, "int64[P+1]")
        _require_kind("indices", self.indices, ("int32", "int64"), 1, "int32[n] or int64[n]")
        P = self.n_parties
        _require_kind("counts", self.counts, ("int32",), 2, f"int32[{P}, K]")
        if len(self.counts) != P:
            raise UsageError(f"counts has {len(self.counts)} rows; one for each of {P} parties")
        if not self._rises_over_all_rows():
            raise UsageError(f"indptr must rise from 0 to the {self.n} rows in indices")
        _require_ascending(self.indptr, self.indices)
        _require_sums(self.counts, self.sizes)

    def _rises_over_all_rows(self) -> bool:
        if not self.indptr.size:
            return False
        has_ends = self.indptr[0] == 0 and self.indptr[-1] == self.n
        return bool(has_ends and (self.sizes >= 0).all())

    def party(self, p: int) -> RowIds:
        """Return the rows of party p, ascending: a view.

        Raises
        ------
        IndexError
            There is no such party.
        """
        require_party(p, self.n_parties)
        start, stop = self.indptr[p : p + 2]
        return self.indices[start:stop]

    def party_counts(self, p: int) -> NDArray[np.int32]:
        """Return [K], the examples of each class at party p. IndexError where there is none."""
        require_party(p, self.n_parties)
        counts: NDArray[np.int32] = self.counts[p]
        return counts

    def __iter__(self) -> Iterator[RowIds]:
        for p in range(self.n_parties):
            yield self.party(p)

    @property
    def n(self) -> int:
        """Examples in this part, over all parties."""
        return len(self.indices)

    @property
    def n_parties(self) -> int:
        """Parties of the split, those without examples among them."""
        return len(self.indptr) - 1

    @property
    def sizes(self) -> Ints:
        """[P] int64 examples of each party."""
        return np.diff(self.indptr)

    @cached_property
    def digest(self) -> str:
        """sha256 over indptr then indices, as little-endian int64."""
        state = hashlib.sha256()
        state.update(self.indptr.astype("<i8").tobytes())
        for start, block in iterate_pieces(self.indices):  # no copy of all rows at once
            state.update(block.astype("<i8").data)
            tell_many("digesting", start + len(block), self.n)
        return state.hexdigest()


def build_checked_part(indptr: Ints, indices: RowIds, counts: NDArray[np.int32]) -> Part:
    """Return the part of arrays that are known to keep its rules.

    `Part(...)` reads every value to check them, which what was just drawn or read need not pay for.
    """
    part = Part.__new__(Part)
    for name, array in (("indptr", indptr), ("indices", indices), ("counts", counts)):
        object.__setattr__(part, name, make_read_only(name, array))
    return part


def require_party(p: int, n_parties: int) -> None:
    """Raise IndexError where there is no party p."""
    require_type("a party", p, (int, np.integer), "its number, 0, 1, ...,")
    if not 0 <= p < n_parties:
        raise IndexError(f"party {p} does not exist; the parties are 0..{n_parties - 1}")


def make_read_only(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view: the caller's own array stays writable, and nothing is copied."""
    if not isinstance(array, np.ndarray):
        raise UsageError(f"{name} is {type(array).__name__}; a numpy array is needed")
    view = array.view()
    view.flags.writeable = False
    return view


def _require_kind(
    name: str,
    array: NDArray[Any],
    dtypes: tuple[str, ...],
    n_axes: int,
    needed: str,
) -> None:
    if array.dtype.name not in dtypes or array.ndim != n_axes:
        got = f"{array.dtype}{list(array.shape)}"
        raise UsageError(f"{name} is {got}; {needed} is needed")


def _require_ascending(indptr: Ints, indices: RowIds) -> None:
    """Raise UsageError unless rows are 0 or more, and ascend within each party.

    Works on a block of rows at a time, so that temporaries stay small.
    """
    for start in range(0, len(indices), _BLOCK):
        # A block begins with the last row of the one before, which its first is compared with.
        block = indices[max(start - 1, 0) : start + _BLOCK]
        if block.min() < 0:
            raise UsageError(f"indices has the row {block.min()}; rows are numbered from 0")
        falls = np.flatnonzero(block[1:] <= block[:-1]) + max(start, 1)
        # A fall is allowed only where the next party begins.
        begins = indptr[np.searchsorted(indptr, falls)]
        wrong = falls[begins != falls]
        if wrong.size:
            place = int(wrong[0])
            p = int(np.searchsorted(indptr, place, side="right")) - 1
            pair = f"{indices[place - 1]} and then {indices[place]}"
            needed = "the rows of a party must ascend, each of them once"
            raise UsageError(f"indices has {pair} at party {p}; {needed}")


def _require_sums(counts: NDArray[np.int32], sizes: Ints) -> None:
    """Raise UsageError unless counts are 0 or more and each party's sum to its size."""
    # A few parties at a time: a table of many classes is much larger than its sums.
    step = max(1, _BLOCK // max(1, counts.shape[1]))
    for first in range(0, len(counts), step):
        table = counts[first : first + step]
        if table.size and table.min() < 0:
            raise UsageError(f"counts has {table.min()}; a number of examples is at least 0")
        sums = table.sum(axis=1, dtype=np.int64)
        wrong = np.flatnonzero(sums != sizes[first : first + step])
        if wrong.size:
            p = first + int(wrong[0])
            got = f"counts of party {p} sum to {sums[wrong[0]]}"
            raise UsageError(f"{got}; they must sum to its {sizes[p]} rows in indices")


def make_empty_part(n_parties: int, n_classes: int) -> Part:
    """Return the Part that holds nothing."""
    indptr = np.zeros(n_parties + 1, np.int64)
    counts = np.broadcast_to(np.int32(0), (n_parties, n_classes))  # takes no memory
    return build_checked_part(indptr, np.zeros(0, np.int32), counts)
