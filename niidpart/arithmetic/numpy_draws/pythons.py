"""What python's `random.Random` draws."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..words import Ints, Words
from .tapes import WordTape

_CELL = 1.0 / 9007199254740992.0  # 2**-53
_POOL_OF_SMALL = 21  # sizes of a pool and of a set that python's `sample` weighs up
_BLOCK = 1 << 12  # words looked at at a time, at most; no value depends on it


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
        n = len(things)
        for i, j in zip(range(n - 1, 0, -1), self._draw_falling(n, n - 1), strict=True):
            things[i], things[j] = things[j], things[i]

    def sample(self, things: list[Any], size: int) -> list[Any]:
        """Return some of the things, as `random.sample` picks them."""
        n = len(things)
        if n <= _weigh_set(size):
            return self._sample_from_pool(things, size)
        taken: dict[int, None] = {}  # keeps the order, and drops a place that was drawn before
        while len(taken) < size:
            taken.update(dict.fromkeys(self._draw(n, size - len(taken))))
        return [things[place] for place in taken]

    def _sample_from_pool(self, things: list[Any], size: int) -> list[Any]:
        pool = list(things)
        chosen = []
        last = len(things)
        for place in self._draw_falling(len(things), size):
            last -= 1
            chosen.append(pool[place])
            pool[place] = pool[last]  # the last one takes the place that is free
        return chosen

    def _draw(self, bound: int, n: int) -> list[int]:
        """Return what `below(bound)` gives n times."""
        drawn: list[int] = []
        while len(drawn) < n:
            numbers = self._peek_numbers(bound, n - len(drawn))
            drawn += self._read_numbers(numbers, numbers < bound, n - len(drawn))
        return drawn

    def _draw_falling(self, bound: int, n: int) -> list[int]:
        """Return what `below` gives n times, of bounds that fall by one each time."""
        drawn: list[int] = []
        while len(drawn) < n:
            highest = bound - len(drawn)
            # Of bounds of as many bits, the same part of each word is used.
            least = 1 << (highest.bit_length() - 1)
            run = min(n - len(drawn), highest - least + 1)
            numbers = self._peek_numbers(highest, run)
            is_taken = numbers < highest
            # A number is taken if it is below the bound less those taken before it. One round of
            # this settles one more number at least, and nearly all of those that are left.
            is_settled = False
            while not is_settled:
                before = is_taken
                is_taken = numbers < highest - np.cumsum(before, dtype=np.int64) + before
                is_settled = np.array_equal(is_taken, before)
            drawn += self._read_numbers(numbers, is_taken, run)
        return drawn

    def _peek_numbers(self, bound: int, n: int) -> Ints:
        """Return the next words, cut to the bits of the bound: about as many as n draws take."""
        words = self._tape.peek(min(_BLOCK, 2 * n))
        return (words >> np.uint64(32 - bound.bit_length())).astype(np.int64)

    def _read_numbers(self, numbers: Ints, is_taken: NDArray[np.bool_], n: int) -> list[int]:
        """Return the numbers that are taken, n at most, and read the words up to the last."""
        places = np.flatnonzero(is_taken)[:n]
        self._tape.skip(int(places[-1]) + 1 if len(places) == n else len(numbers))
        taken: list[int] = numbers[places].tolist()
        return taken


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
