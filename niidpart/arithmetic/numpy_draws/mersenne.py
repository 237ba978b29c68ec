"""Tapes of MT19937's words by the two ways in which it is seeded.

Matsumoto and Nishimura, ACM TOMACS 8(1), 1998; the seeding is that of 2002.
"""

import numpy as np

from .tapes import WordTape

_N_WORDS = 624
_MASK = 0xFFFFFFFF


def open_seeded(seed: int) -> WordTape:
    """Return the words after `np.random.seed(seed)`, of a seed 0..2**32-1.

    Examples
    --------
    >>> open_seeded(0).read()
    2357136044
    """
    return _open(_spread(seed))


def open_seeded_by_list(key: list[int]) -> WordTape:
    """Return the words after seeding by a list of words, as python's `random` does.

    Examples
    --------
    >>> open_seeded_by_list([0]).read()
    3626764237
    """
    words = _spread(19650218)
    i = 1
    for step in range(max(_N_WORDS, len(key))):
        j = step % len(key)
        mixed = _mix(words[i - 1]) * 1664525 & _MASK
        words[i] = ((words[i] ^ mixed) + key[j] + j) & _MASK
        i = _advance(words, i)
    for _ in range(_N_WORDS - 1):
        mixed = _mix(words[i - 1]) * 1566083941 & _MASK
        words[i] = ((words[i] ^ mixed) - i) & _MASK
        i = _advance(words, i)
    words[0] = 1 << 31
    return _open(words)


def _spread(seed: int) -> list[int]:
    """Return the words of a state that one number gives."""
    words = [seed]
    for i in range(1, _N_WORDS):
        words.append((_mix(words[-1]) * 1812433253 + i) & _MASK)
    return words


def _mix(word: int) -> int:
    return word ^ word >> 30


def _advance(words: list[int], i: int) -> int:
    """Return the next place; behind the last one the first word takes the last one's value."""
    if i < _N_WORDS - 1:
        return i + 1
    words[0] = words[-1]
    return 1


def _open(words: list[int]) -> WordTape:
    generator = np.random.MT19937()
    generator.state = {
        "bit_generator": "MT19937",
        "state": {"key": np.array(words, np.uint32), "pos": _N_WORDS},
    }
    return WordTape(generator.random_raw)
