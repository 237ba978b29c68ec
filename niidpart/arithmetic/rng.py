"""Random numbers that stay the same for years. `stream(seed, *names)` alone builds a generator.

numpy promises the integer words of its bit generators and nothing else. So a `Stream` takes raw
words of Philox4x64-10 and turns them into permutations, integers, normals and Dirichlet draws
itself, with integer arithmetic and IEEE basic operations only.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import exact
from .counters import philox
from .dirichlet import draw_proportions
from .exact import Floats
from .fields import normal_blocks, normal_field, uniform_field
from .order_keys import OrderKeys
from .words import Ints, Words, to_unit

__all__ = [
    "Ints",
    "Stream",
    "Words",
    "normal_blocks",
    "normal_field",
    "philox",
    "stream",
    "uniform_field",
]

_BLOCK = 1 << 16  # words drawn at a time; no value depends on it


def stream(
    seed: int, *names: str | int, given: Mapping[str, NDArray[Any]] | None = None
) -> "Stream":
    """Return the stream of random words that belongs to a seed and names.

    Streams of different names are independent.

    Parameters
    ----------
    seed : int
    *names : str or int
        What the stream is for, such as "strategy", "dir".
    given : mapping of str to array, optional
        Draws that were stored: `Stream.draw` returns these instead of drawing again.

    Returns
    -------
    Stream

    Examples
    --------
    >>> stream(0, "example").integers(10, 4).tolist()
    [9, 5, 7, 3]
    """
    # JSON keeps names apart: ("a", "b") is not ("ab",), and 1 is not "1".
    text = json.dumps(["niidpart stream 1", seed, *names], separators=(",", ":"))
    key = hashlib.sha256(text.encode()).digest()
    return Stream(key, given)


class Stream:
    """A named stream. Each method takes the words that it needs from where the last one stopped.

    Parameters
    ----------
    key : bytes
        32 bytes that name the stream; `stream` makes them of a seed and names.
    given : mapping of str to array, optional
        Stored draws, which `draw` returns instead of drawing again.

    Examples
    --------
    >>> Stream(bytes(32)).child("sizes").uniform(3).shape
    (3,)
    """

    def __init__(self, key: bytes, given: Mapping[str, NDArray[Any]] | None = None):
        self._key = key
        self._given = given or {}
        # Philox takes a key of 128 bits: two words, little-endian on every machine.
        words = np.frombuffer(key[:16], "<u8")
        self._bits = np.random.Philox(key=words.astype(np.uint64))

    def child(self, name: str) -> "Stream":
        """Return a stream of its own, which does not depend on what was drawn from this one.

        Parameters
        ----------
        name : str
            What the child is for.

        Returns
        -------
        Stream

        Examples
        --------
        >>> rng = stream(0, "example")
        >>> rng.child("sizes").integers(10, 4).tolist()
        [0, 4, 4, 1]
        """
        key = hashlib.sha256(self._key + name.encode()).digest()
        return Stream(key)

    def draw(self, name: str, sample: Callable[["Stream"], NDArray[Any]]) -> NDArray[Any]:
        """Return `sample(child stream)`, or the stored draw of that name where one was given.

        Parameters
        ----------
        name : str
            The name under which the split file stores the draw.
        sample : callable
            Takes the child stream of that name and returns the array that it draws.

        Returns
        -------
        array
            What `sample` returned, or the stored array.

        Examples
        --------
        >>> stream(0, "example").draw("order", lambda rng: rng.permutation(5)).tolist()
        [0, 4, 2, 1, 3]
        >>> stream(0, "example", given={"order": np.arange(5)}).draw("order", len).tolist()
        [0, 1, 2, 3, 4]
        """
        if name in self._given:
            return self._given[name]
        return sample(self.child(name))

    def words(self, n: int) -> Words:
        """Return raw random words.

        Parameters
        ----------
        n : int

        Returns
        -------
        array of uint64 [n]

        Examples
        --------
        >>> stream(0, "example").words(1).tolist()
        [6530970532412300219]
        """
        words: Words = self._bits.random_raw(n)
        return words

    def uniform(self, n: int) -> Floats:
        """Return floats that are uniform on the open interval (0, 1).

        They are the middles of 2**52 equal cells, so that neither 0 nor 1 is among them.

        Parameters
        ----------
        n : int

        Returns
        -------
        array of float64 [n]

        Examples
        --------
        >>> stream(0, "example").uniform(3).round(3).tolist()
        [0.354, 0.384, 0.875]
        """
        return to_unit(self.words(n))

    def normal(self, n: int) -> Floats:
        """Return standard normal floats, made by inverting the distribution function.

        Parameters
        ----------
        n : int

        Returns
        -------
        array of float64 [n]

        Examples
        --------
        >>> stream(0, "example").normal(3).round(3).tolist()
        [-0.374, -0.295, 1.148]
        """
        return exact.normal_quantile(self.uniform(n))

    def integers(self, bound: int, n: int) -> Ints:
        """Return integers that are uniform on 0..bound-1 (by rejection, so without bias).

        Parameters
        ----------
        bound : int
            At least 1.
        n : int

        Returns
        -------
        array of int64 [n]

        Examples
        --------
        >>> stream(0, "example").integers(3, 6).tolist()
        [2, 1, 1, 1, 1, 0]
        """
        # Words beyond the last whole multiple of the bound would favour the small remainders.
        n_fair = (1 << 64) // bound * bound
        limit = np.uint64(n_fair - 1)  # n_fair itself may be 2**64
        words = self.words(n)
        rejected = np.flatnonzero(words > limit)
        while rejected.size:
            words[rejected] = self.words(rejected.size)
            rejected = np.flatnonzero(words > limit)
        words %= np.uint64(bound)
        return words.view(np.int64)

    def permutation(self, n: int) -> Ints:
        """Return a random order of 0..n-1.

        Parameters
        ----------
        n : int

        Returns
        -------
        array of int64 [n]

        Examples
        --------
        >>> stream(0, "example").permutation(5).tolist()
        [3, 0, 1, 4, 2]
        """
        return self.grouped_permutation(np.zeros(n, np.int64), 1)

    def grouped_permutation(self, labels: Ints, n_classes: int) -> Ints:
        """Return all indices, class by class, in random order within each class.

        Parameters
        ----------
        labels : array of int [N]
            Class ids 0..n_classes-1.
        n_classes : int

        Returns
        -------
        array of int64 [N]
            The indices of class 0 first, then those of class 1, ...

        Examples
        --------
        >>> stream(0, "example").grouped_permutation(np.array([1, 0, 1, 0]), 2).tolist()
        [3, 1, 0, 2]
        """
        # One sort of words that hold class, random bits and index.
        n = len(labels)
        order = OrderKeys.of(n, n_classes)
        keys = np.empty(n, np.uint64)
        for start in range(0, n, _BLOCK):  # block by block: no other array of n words is needed
            stop = min(start + _BLOCK, n)
            keys[start:stop] = order.compose(self.words(stop - start), start, labels[start:stop])
        keys.sort()
        return order.take_indices(keys)

    def dirichlet(self, beta: float, shape: tuple[int, ...]) -> Floats:
        """Return draws from the symmetric Dirichlet distribution Dir(beta).

        Parameters
        ----------
        beta : float
            The concentration: 0.1 is strong skew, 100 nearly none.
        shape : tuple of int
            Of the result; the last axis is what the draws are over.

        Returns
        -------
        array of float64
            Each row (last axis) is one draw; rows sum to 1 up to rounding.

        Raises
        ------
        UsageError
            For a beta outside 1e-9..1e9, where the logarithms lose their digits.

        Examples
        --------
        >>> stream(0, "example").dirichlet(0.5, (2, 3)).round(3).tolist()
        [[0.0, 0.122, 0.878], [0.11, 0.04, 0.849]]
        """
        return draw_proportions(self, beta, shape)
