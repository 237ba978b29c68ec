"""Orders of many small integers by one sort of words.

A word holds a key above a number of its own, so words differ and every sorting routine gives one
order. numpy's sort of such words is several times as fast as its stable sorts of wide integers.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .words import Ints

_RADIX_KEYS = 1 << 16  # numpy's stable sort of 16 bits is a radix sort, the fastest
_WORD_BITS = 64


def sort_by_key(keys: NDArray[Any], n_keys: int) -> Ints:
    """Return the places of the keys in ascending order; equal ones stay in the order of place.

    Parameters
    ----------
    keys : array of int [n]
        In 0..n_keys-1.
    n_keys : int

    Returns
    -------
    array of int64 [n]

    Examples
    --------
    >>> sort_by_key(np.array([2, 0, 2, 1]), 3).tolist()
    [1, 3, 0, 2]
    """
    if n_keys <= _RADIX_KEYS:
        return np.argsort(keys.astype(np.uint16), kind="stable")
    n = len(keys)
    place_bits = n.bit_length()
    if (n_keys - 1).bit_length() + place_bits > _WORD_BITS:
        return np.argsort(keys, kind="stable")
    places = np.arange(n, dtype=np.uint64)
    return _sort_words(keys, places, place_bits)


def sort_pairs(keys: Ints, values: Ints, n_keys: int, n_values: int) -> Ints:
    """Return the values in ascending order of their keys, and ascending within a key.

    Parameters
    ----------
    keys, values : array of int [n]
        In 0..n_keys-1 and 0..n_values-1.
    n_keys, n_values : int

    Returns
    -------
    array of int64 [n]

    Examples
    --------
    >>> sort_pairs(np.array([1, 0, 1]), np.array([7, 9, 3]), 2, 10).tolist()
    [9, 3, 7]
    """
    value_bits = n_values.bit_length()
    if (n_keys - 1).bit_length() + value_bits > _WORD_BITS:
        return values[np.lexsort((values, keys))]
    return _sort_words(keys, values, value_bits)


def _sort_words(keys: NDArray[Any], values: NDArray[Any], value_bits: int) -> Ints:
    words = keys.astype(np.uint64)
    words <<= np.uint64(value_bits)
    words |= values.view(np.uint64)
    words.sort()
    words &= np.uint64((1 << value_bits) - 1)
    return words.view(np.int64)
