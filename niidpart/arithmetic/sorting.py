"""Orders of many small integers by one sort of words.

A word holds a key above a number of its own, so words differ and every sorting routine gives one
order. numpy's sort of such words is several times as fast as its stable sorts of wide integers.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .words import Ints

_RADIX_KEYS = 1 << 16  # numpy's stable sort of 16 bits is a radix sort, the fastest of few keys
_WORD_BITS = 64
_SHORT_BITS = 32  # words of these are sorted in half the time
_BLOCK_BITS = 18  # of the places of a block: a megabyte of words, which stays in the cache
_RUN = 8  # places of a key in a block, on average, from which on blocks pay
_SEGMENT = 1 << 7  # values of a key, on average, from which on they are sorted by themselves
_MOST_PLACES = 1 << 31  # fewer are numbered in int32


def sort_by_key(keys: NDArray[Any], n_keys: int) -> NDArray[Any]:
    """Return the places of the keys in ascending order; equal ones stay in the order of place.

    Parameters
    ----------
    keys : array of int [n]
        In 0..n_keys-1.
    n_keys : int

    Returns
    -------
    array of int32 or int64 [n]

    Examples
    --------
    >>> sort_by_key(np.array([2, 0, 2, 1]), 3).tolist()
    [1, 3, 0, 2]
    """
    n = len(keys)
    block = _choose_block(n, n_keys)
    if block:
        places, _ = _group_in_blocks(keys, n_keys, block)
        return places
    if n_keys <= _RADIX_KEYS:
        return np.argsort(keys.astype(np.uint16), kind="stable")
    place_bits = n.bit_length()
    if (n_keys - 1).bit_length() + place_bits > _WORD_BITS:
        return np.argsort(keys, kind="stable")
    places = np.arange(n, dtype=np.uint64)
    return _sort_words(keys, places, place_bits)


def _choose_block(n: int, n_keys: int) -> int:
    """Return how many places are sorted at a time, a power of two; 0 where blocks do not pay."""
    key_bits = (n_keys - 1).bit_length()
    block_bits = min(_BLOCK_BITS, _SHORT_BITS - key_bits)
    if block_bits <= 0 or n >= _MOST_PLACES:
        return 0
    block = 1 << block_bits
    return block if n_keys * _RUN <= block <= n else 0


def _group_in_blocks(
    keys: NDArray[Any], n_keys: int, block: int, values: NDArray[Any] | None = None
) -> tuple[NDArray[np.int32], Ints]:
    """Return the places of each key, one key after the other, and where each one's end.

    A block that is sorted has a run of places for each key, and a run goes behind those of its key
    that earlier blocks had. values: [n] below 2^31, that are taken in place of the places.
    """
    n = len(keys)
    lengths_of = []  # of the runs of each block
    for start in range(0, n, block):
        lengths_of.append(np.bincount(keys[start : start + block], minlength=n_keys))
    sizes = np.sum(lengths_of, axis=0, dtype=np.int64)
    ends = np.cumsum(sizes, dtype=np.int64) - sizes  # of what the keys have in earlier blocks
    every_place = np.arange(block, dtype=np.uint32)
    grouped = np.empty(n, np.int32)
    for start, lengths in zip(range(0, n, block), lengths_of, strict=True):
        some = keys[start : start + block]
        words = some.astype(np.uint32)
        words <<= np.uint32(block.bit_length() - 1)
        words |= every_place[: len(some)]
        words.sort()
        words &= np.uint32(block - 1)
        begins = np.cumsum(lengths, dtype=np.int64) - lengths  # of the runs, within the block
        targets = np.repeat(ends - begins, lengths)
        targets += np.arange(len(some))
        if values is None:
            words += np.uint32(start)
            grouped[targets] = words.view(np.int32)
        else:
            grouped[targets] = values[start : start + block][words]
        ends += lengths
    return grouped, ends


def sort_pairs(
    keys: NDArray[Any], values: NDArray[Any], n_keys: int, n_values: int
) -> NDArray[Any]:
    """Return the values in ascending order of their keys, and ascending within a key.

    Parameters
    ----------
    keys, values : array of int [n]
        In 0..n_keys-1 and 0..n_values-1.
    n_keys, n_values : int

    Returns
    -------
    array of int32 or int64 [n]

    Examples
    --------
    >>> sort_pairs(np.array([1, 0, 1]), np.array([7, 9, 3]), 2, 10).tolist()
    [9, 3, 7]
    """
    n = len(keys)
    block = _choose_block(n, n_keys)
    if block and n_values < _MOST_PLACES and n >= _SEGMENT * n_keys:
        grouped, ends = _group_in_blocks(keys, n_keys, block, values)
        for of_key in np.split(grouped, ends[:-1]):
            of_key.sort()
        return grouped
    value_bits = n_values.bit_length()
    if (n_keys - 1).bit_length() + value_bits > _WORD_BITS:
        return values[np.lexsort((values, keys))]
    return _sort_words(keys, values, value_bits)


def _sort_words(keys: NDArray[Any], values: NDArray[Any], value_bits: int) -> Ints:
    words = keys.astype(np.uint64)
    words <<= np.uint64(value_bits)
    words |= values.astype(np.uint64, copy=False)
    words.sort()
    words &= np.uint64((1 << value_bits) - 1)
    return words.view(np.int64)
