"""What python's `random.Random` draws."""

from typing import Any

import numpy as np

from ..words import Words
from .tapes import WordTape

_CELL = 1.0 / 9007199254740992.0  # 2**-53
_POOL_OF_SMALL = 21  # sizes of a pool and of a set that python's `sample` weighs up


class PythonDraws:
    """What `random.seed(seed)` and the functions of python's `random` give.

    Parameters
    ----------
    seed : int
        From 0 on.

    Examples
    --------
    >>> things = [0, 1, 2, 3]
    >>> PythonDraws(0).shuffle(things)
    >>> things
    [2, 0, 1, 3]
    """

    def __init__(self, seed: int):
        n_words = max(1, -(-seed.bit_length() // 32))
        key = [seed >> 32 * i & 0xFFFFFFFF for i in range(n_words)]
        # Seeded with a list of words, numpy's generator gives the words that python's does.
        generator = np.random.RandomState(key)

        def fetch(n: int) -> Words:
            return np.frombuffer(generator.bytes(4 * n), "<u4").astype(np.uint64)

        self._tape = WordTape(fetch)

    def uniform(self) -> float:
        """Return a float in [0, 1), as `random.random()`: 27 bits of a word and 26 of the next."""
        high, low = self._tape.read() >> 5, self._tape.read() >> 6
        return ((high << 26) + low) * _CELL

    def below(self, bound: int) -> int:
        """Return an integer 0..bound-1, of a bound up to 2**32."""
        unused_bits = 32 - bound.bit_length()
        number = self._tape.read() >> unused_bits
        while number >= bound:
            number = self._tape.read() >> unused_bits
        return number

    def shuffle(self, things: list[Any]) -> None:
        """Shuffle a list in place, as `random.shuffle` does."""
        for i in range(len(things) - 1, 0, -1):
            j = self.below(i + 1)
            things[i], things[j] = things[j], things[i]

    def sample(self, things: list[Any], size: int) -> list[Any]:
        """Return some of the things, as `random.sample` picks them."""
        n = len(things)
        if n <= _weigh_set(size):
            return self._sample_from_pool(things, size)
        taken: set[int] = set()
        chosen: list[Any] = []
        while len(chosen) < size:
            place = self.below(n)
            if place not in taken:
                taken.add(place)
                chosen.append(things[place])
        return chosen

    def _sample_from_pool(self, things: list[Any], size: int) -> list[Any]:
        pool = list(things)
        chosen = []
        for left in range(len(things), len(things) - size, -1):
            place = self.below(left)
            chosen.append(pool[place])
            pool[place] = pool[left - 1]  # the last one takes the place that is free
        return chosen


def _weigh_set(size: int) -> int:
    """Return the size of a pool up to which `random.sample` copies it.

    21 and, for more than five, the least power of 4 that is not below three times the size.
    """
    if size <= 5:
        return _POOL_OF_SMALL
    power = 1
    while power < 3 * size:
        power *= 4
    return _POOL_OF_SMALL + power
