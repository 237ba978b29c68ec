"""`OpenedPart`: one part of a split file that is open. A party is read without the others."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..renamed import warn_renamed
from ..splits.part import require_party
from ..splits.view import RowIds, SplitView
from .faults import refuse
from .layout import KEYS
from .open_file import OpenFile
from .part_rules import RowCheck, require_rising, require_sums
from .stored import StoredArray, read_values


class OpenedPart:
    """One part of a split file that is open. Keeps the protocol `PartView`.

    What is read of a party costs time by its size, not by that of the file, and is held to its
    rules (31 to 33 of docs/format.md).
    """

    def __init__(self, split: SplitView, file: OpenFile, name: str):
        self._split, self._file, self.name = split, file, name
        self._arrays: tuple[StoredArray, ...] | None = None  # None: the part is empty
        if f"{name}/indptr" in file.arrays:
            self._arrays = tuple(file.arrays[f"{name}/{key}"] for key in KEYS)

    @property
    def n(self) -> int:
        """Examples in this part, over all parties."""
        return self._arrays[1].shape[0] if self._arrays else 0

    @property
    def n_parties(self) -> int:
        """Parties of the split, those without examples among them."""
        return self._split.n_parties

    @property
    def _n_classes(self) -> int:
        return len(self._split.source.class_names)

    @cached_property
    def sizes(self) -> Ints:
        """[P] int64 examples of each party. Reads all of `indptr`: 8 bytes a party."""
        if self._arrays is None:
            return np.zeros(self.n_parties, np.int64)
        with self._file.reading():
            indptr = read_values(self._arrays[0])
            require_rising(self.name, indptr, self.n)
        return np.diff(indptr)

    @cached_property
    def counts(self) -> NDArray[np.int32]:
        """[P, K] examples of each class at each party. Reads all of it: 4 bytes a number."""
        if self._arrays is None:
            return np.zeros((self.n_parties, self._n_classes), np.int32)
        sizes = self.sizes
        with self._file.reading():
            counts: NDArray[np.int32] = read_values(self._arrays[2])
            require_sums(self.name, counts, sizes)
        return counts

    def party(self, p: int) -> RowIds:
        """Return the rows of party p, ascending.

        Raises
        ------
        IndexError
            There is no such party.
        SplitError
            The file breaks a rule on these rows.
        """
        require_party(p, self.n_parties)
        if self._arrays is None:
            return np.zeros(0, np.int32)
        indptr, indices, _ = self._arrays
        with self._file.reading():
            start, stop = self._read_bounds(indptr, p)
            rows = indices.rows(start, stop)
            if len(rows):
                check = RowCheck(self.name, np.array([0, len(rows)]), self._split.source.n)
                check(0, rows)
        return rows

    def party_counts(self, p: int) -> NDArray[np.int32]:
        """Return [K], the examples of each class at party p. IndexError where there is none."""
        require_party(p, self.n_parties)
        if self._arrays is None:
            return np.zeros(self._n_classes, np.int32)
        indptr, _, counts = self._arrays
        with self._file.reading():
            start, stop = self._read_bounds(indptr, p)
            row = counts.rows(p, p + 1)
            require_sums(self.name, row, np.array([stop - start]))
        own: NDArray[np.int32] = row[0]
        return own

    def __iter__(self) -> Iterator[RowIds]:
        return (self.party(p) for p in range(self.n_parties))

    def hf(self, p: int, **how: Any) -> Any:
        """Return party p as a `datasets.Dataset`: the old name of `niidpart.to_hf`."""
        from ..interop.one_party import to_hf

        warn_renamed("opened.train.hf(p)", "niidpart.to_hf(opened, p, 'train')")
        return to_hf(self._split, p, self.name, **how)

    def _read_bounds(self, indptr: StoredArray, p: int) -> tuple[int, int]:
        start, stop = map(int, indptr.rows(p, p + 2))
        if not 0 <= start <= stop <= self.n:
            refuse(31, f"/{self.name}/indptr does not rise from 0 to {self.n}")
        return start, stop
