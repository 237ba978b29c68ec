"""An array of a split file that is not read yet.

Its shape and type are known; its values come when they are asked for, a block of rows at a time.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..arithmetic.words import Array
from ..disk.arrays import ArrayFile

Look = Callable[[int, Array], None]
"""Sees (first row of a block, the block); raises faults.Refused where it breaks a rule."""


class StoredArray(Protocol):
    """shape: one or two axes. block: rows that are read at once."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    block: int

    def rows(self, start: int, stop: int) -> Array:
        """Return rows start..stop-1, checksums checked. faults.Refused where they are damaged."""
        ...


@dataclass(frozen=True)
class Content:
    """The content of a file, not yet believed: its arrays by their path.

    own: the file is the reader's own, so that its hint may be followed.
    """

    arrays: Mapping[str, StoredArray]
    own: bool


def count_bytes(array: StoredArray) -> int:
    """Return the bytes that the array declares."""
    size = array.dtype.itemsize
    for length in array.shape:
        size *= length
    return size


def iterate_blocks(array: StoredArray) -> Iterator[tuple[int, Array]]:
    """Go through (first row, rows), one block after the other."""
    for start in range(0, array.shape[0], array.block):
        yield start, array.rows(start, min(start + array.block, array.shape[0]))


def read_values(array: StoredArray, look: Look | None = None) -> Array:
    """Return all values.

    look: sees each block before the next is read, so that a file that is wrong from the start costs
    no memory.
    """
    out = np.empty(array.shape, array.dtype)  # the system gives the pages when they are written
    for start, rows in iterate_blocks(array):
        if look is not None:
            look(start, rows)
        out[start : start + len(rows)] = rows
    return out


def copy_values(array: StoredArray, look: Look, path: Path) -> Array:
    """Return all values [n] as `read_values` does, in a file that is made: for large arrays."""
    copy = ArrayFile(path, array.dtype)
    for start, rows in iterate_blocks(array):
        look(start, rows)
        copy.append(rows)
    return copy.finish()
