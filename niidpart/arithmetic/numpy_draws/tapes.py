"""Words of a bit generator in their order, to be read one by one or many at a time."""

from collections.abc import Callable

import numpy as np

from ..words import Words

_BLOCK = 1 << 12  # words fetched at a time, at least; no value depends on it


class WordTape:
    """The words of a generator from where reading stopped.

    Parameters
    ----------
    fetch : callable
        Takes how many words are wanted next and returns them.

    Examples
    --------
    >>> tape = WordTape(np.random.PCG64(0).random_raw)
    >>> first = tape.peek(2).tolist()
    >>> [tape.read(), tape.read()] == first
    True
    """

    def __init__(self, fetch: Callable[[int], Words]):
        self._fetch = fetch
        self._words: Words = np.zeros(0, np.uint64)
        self._numbers: list[int] = []
        self._at = 0
        self._n_fetched = 0

    @property
    def position(self) -> int:
        """Return how many words were read."""
        return self._n_fetched - len(self._words) + self._at

    def read(self) -> int:
        """Return the next word."""
        at = self._at
        if at >= len(self._numbers):
            self._extend(1)
            at = 0
        self._at = at + 1
        return self._numbers[at]

    def peek(self, n: int) -> Words:
        """Return the next n words, which are still unread."""
        if self._at + n > len(self._words):
            self._extend(n)
        return self._words[self._at : self._at + n]

    def skip(self, n: int) -> None:
        """Take n words as read, which `peek` has shown."""
        self._at += n

    def take(self, n: int) -> Words:
        """Return the next n words."""
        words = self.peek(n)
        self.skip(n)
        return words

    def _extend(self, n: int) -> None:
        """Have n unread words at least, the next one at place 0."""
        unread = self._words[self._at :]
        fetched = self._fetch(max(_BLOCK, n - len(unread)))
        self._n_fetched += len(fetched)
        self._words = np.concatenate([unread, fetched])
        self._numbers = self._words.tolist()
        self._at = 0
