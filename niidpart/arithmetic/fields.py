"""Fields of random numbers: a value depends on a key, its row and its column alone.

The noise of one example is the same however many are read with it.
"""

from collections.abc import Iterator

import numpy as np

from . import exact
from .counters import MASK, WORD, philox
from .exact import Floats
from .words import Ints, Words, to_unit

_FIELD_VALUES = 1 << 18  # made at a time; no value depends on it


def normal_field(key: int, rows: Ints, width: int) -> Floats:
    """Return standard normals, of which row r, column j depends on `key`, `rows[r]` and j alone.

    Parameters
    ----------
    key : int
        64 bits.
    rows : array of int [R]
        Numbers of the rows, such as rows of the data set.
    width : int
        Values of a row.

    Returns
    -------
    array of float64 [R, width]

    Examples
    --------
    >>> both = normal_field(7, np.array([0, 5]), 3)
    >>> np.array_equal(normal_field(7, np.array([5]), 2), both[1:, :2])
    True
    """
    n_rows = len(rows)
    n_pairs = (width + 1) // 2  # one counter gives four words of 32 bits: two values
    row = np.repeat(rows.astype(np.uint64), n_pairs)
    column = np.tile(np.arange(n_pairs, dtype=np.uint64), n_rows)
    counter = (column, row & MASK, row >> WORD, np.zeros_like(row))
    a, b, c, d = philox(key, counter)
    first = a << WORD | b
    second = c << WORD | d
    words = np.stack([first, second], axis=-1).reshape(n_rows, 2 * n_pairs)
    words = words[:, :width]  # of an odd width the last value is not needed
    u = to_unit(words.reshape(-1))
    values = exact.normal_quantile(u)
    return values.reshape(n_rows, width)


def normal_blocks(key: int, rows: Ints, width: int) -> Iterator[tuple[slice, Floats]]:
    """Yield the `normal_field` of the rows, a few rows at a time, so that temporaries stay small.

    Parameters
    ----------
    key : int
        64 bits.
    rows : array of int [R]
    width : int
        Values of a row.

    Yields
    ------
    some : slice
        Which of `rows` these are.
    values : array of float64 [rows of the slice, width]

    Examples
    --------
    >>> for some, z in normal_blocks(7, np.arange(4), 3):
    ...     print(some, z.shape)
    slice(0, 4, None) (4, 3)
    """
    step = max(1, _FIELD_VALUES // max(width, 1))
    for start in range(0, len(rows), step):
        some = slice(start, min(start + step, len(rows)))
        yield some, normal_field(key, rows[some], width)


def uniform_field(key: int, rows: Ints, width: int) -> tuple[Floats, Words]:
    """Return floats that are uniform on (0, 1), and words, by key, row and column alone.

    Parameters
    ----------
    key : int
        64 bits.
    rows : array of int [R]
        Numbers of the rows, such as rows of the data set.
    width : int
        Values of a row.

    Returns
    -------
    u : array of float64 [R, width]
    words : array of uint64 [R, width]
        32 random bits each, which do not depend on `u`.

    Examples
    --------
    >>> u, words = uniform_field(7, np.array([0, 5]), 3)
    >>> u.shape, bool((words < 1 << 32).all())
    ((2, 3), True)
    """
    row = np.repeat(rows.astype(np.uint64), width)
    column = np.tile(np.arange(width, dtype=np.uint64), len(rows))
    counter = (column, row & MASK, row >> WORD, np.zeros_like(row))
    a, b, c, _ = philox(key, counter)
    u = to_unit(a << WORD | b)
    return u.reshape(len(rows), width), c.reshape(len(rows), width)
