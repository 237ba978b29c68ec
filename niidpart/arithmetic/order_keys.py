"""Words that, sorted, are a random order: `Stream.grouped_permutation`, in memory or on a disk."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .words import Ints, Words


class OrderKeys(NamedTuple):
    """How a class, random bits and an index make one word, from the top bit down.

    The words are unique, so every way of sorting gives the same order.
    """

    class_bits: int
    index_bits: int

    @classmethod
    def of(cls, n: int, n_classes: int) -> Self:
        """Return that of n indices in so many classes."""
        return cls((n_classes - 1).bit_length(), max(n - 1, 1).bit_length())

    def compose(self, words: Words, start: int, classes: NDArray[Any]) -> Words:
        """Return the keys of the indices start, start + 1, ...; `words` becomes them.

        words: random ones, one for each index. classes: [len(words)].
        """
        words >>= np.uint64(self.class_bits)  # room for the class above the random bits
        words &= ~self._index_mask  # and for the index below them
        words |= np.arange(start, start + len(words), dtype=np.uint64)
        if self.class_bits:  # a shift by 64 is undefined
            to_top = np.uint64(64 - self.class_bits)
            words |= classes.astype(np.uint64) << to_top
        return words

    def take_indices(self, keys: Words) -> Ints:
        """Return the index in each key; `keys` becomes them."""
        keys &= self._index_mask
        return keys.view(np.int64)

    @property
    def _index_mask(self) -> np.uint64:
        return np.uint64((1 << self.index_bits) - 1)
