"""Arrays by what they hold; random words, and the floats that they stand for."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .exact import Floats

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]
Array = NDArray[Any]  # of any type and shape

_UNUSED = np.uint64(12)  # low bits of a word that a float64 has no room for
_CELL = 1 / (1 << 52)  # width of the cells of (0, 1)
_CACHED = 1 << 13  # values made at a time; none depends on it


def to_unit(words: Words) -> Floats:
    """Return the middle of the cell of (0, 1) that the upper 52 bits of each word number."""
    values = np.empty(words.shape)
    for start in range(0, len(words), _CACHED):
        block = values[start : start + _CACHED]
        cells = words[start : start + _CACHED] >> _UNUSED
        # At most 52 bits and the half: each value is exact, and neither 0 nor 1 is among them.
        np.multiply(cells.astype(np.float64), _CELL, out=block)
        block += _CELL / 2
    return values
