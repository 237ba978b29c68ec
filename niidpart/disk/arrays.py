"""Arrays in files: written from front to back, then used like any array, by pages of the file."""

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..files import explain_refusal
from ..temporaries import advise_elsewhere

_PIECE = 1 << 22  # values at a time


class ArrayFile:
    """An array [n] that is being written. `finish` gives it."""

    def __init__(self, path: Path, dtype: DTypeLike):
        self._path, self._dtype = path, np.dtype(dtype)
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self.n = 0

    def append(self, values: NDArray[Any]) -> None:
        """Write values behind those that are there."""
        raw = np.ascontiguousarray(values, self._dtype).view(np.uint8).data
        folder = self._path.parent
        with explain_refusal(f"{folder} took no more", advise_elsewhere(folder)):
            while raw:  # a file that nearly fills the disk takes a part
                raw = raw[os.write(self._handle, raw) :]
        self.n += len(values)

    def close(self) -> None:
        """Close the file. Closing it twice is no error."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def finish(self) -> NDArray[Any]:
        """Return the whole array, read-only. It lives as long as its file."""
        self.close()
        if not self.n:
            return np.zeros(0, self._dtype)
        return np.memmap(self._path, self._dtype, "r")


def iterate_pieces(array: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Go through (first place, values) of an array [n], of which few are in memory at once."""
    for start in range(0, len(array), _PIECE):
        yield start, array[start : start + _PIECE]
        release_pages(array)


def release_pages(array: NDArray[Any]) -> None:
    """Give back the memory of an array that lies in a file; it is read again where it is used.

    Of any other mode than "r" the memory may hold what the file does not.
    """
    pages = getattr(array, "_mmap", None)
    if getattr(array, "mode", "") != "r":
        return
    if isinstance(pages, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)
