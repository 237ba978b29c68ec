"""Random numbers that stay the same for years. `stream(seed, *names)` alone builds a generator.

numpy promises the integer words of its bit generators and nothing else. So a `Stream` takes raw
words of Philox4x64-10 and turns them into permutations, integers, normals and Dirichlet draws
itself, with integer arithmetic and IEEE basic operations only.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UsageError
from . import exact
from .exact import Floats

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]

# Words or variates drawn at a time. For gamma variates it is part of the definition of a stream:
# another value gives other draws.
_BLOCK = 1 << 16
_FIELD_VALUES = 1 << 18  # of a field, made at a time; no value depends on it
_CELL = 1 / (1 << 52)  # width of the cells whose middles `uniform` draws


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
    text = json.dumps(["niidpart stream 1", seed, *names], separators=(",", ":"))
    return Stream(hashlib.sha256(text.encode()).digest(), given)


class Stream:
    """A named stream. Each method takes the words that it needs from where the last one stopped.

    Parameters
    ----------
    key : bytes
        32 bytes that name the stream; `stream` makes them of a seed and names.
    given : mapping of str to array, optional
        Stored draws, which `draw` returns instead of drawing again.
    """

    def __init__(self, key: bytes, given: Mapping[str, NDArray[Any]] | None = None):
        self._key = key
        self._given = given or {}
        words = np.frombuffer(key[:16], "<u8").astype(np.uint64)
        self._bits = np.random.Philox(key=words)

    def child(self, name: str) -> "Stream":
        """Return a stream of its own, which does not depend on what was drawn from this one."""
        return Stream(hashlib.sha256(self._key + name.encode()).digest())

    def draw(self, name: str, sample: Callable[["Stream"], NDArray[Any]]) -> NDArray[Any]:
        """Return `sample(child stream)`, or the stored draw of that name where one was given.

        Parameters
        ----------
        name : str
            The name under which the split file stores the draw.
        sample : callable
            Draws the array from the child stream of that name.
        """
        if name in self._given:
            return self._given[name]
        return sample(self.child(name))

    def words(self, n: int) -> Words:
        """Return [n] raw 64-bit words."""
        words: Words = self._bits.random_raw(n)
        return words

    def uniform(self, n: int) -> Floats:
        """Return [n] float64 in the open interval (0, 1): the middles of 2**52 equal cells."""
        return _to_unit(self.words(n))

    def normal(self, n: int) -> Floats:
        """Return [n] standard normal float64, by inverting the distribution function."""
        return exact.normal_quantile(self.uniform(n))

    def integers(self, bound: int, n: int) -> Ints:
        """Return [n] int64, each uniform on 0..bound-1 (by rejection, so without bias)."""
        # Words beyond the last whole multiple of the bound would favour the small remainders.
        limit = np.uint64((1 << 64) // bound * bound - 1)
        words = self.words(n)
        while True:
            rejected = np.flatnonzero(words > limit)
            if not rejected.size:
                return (words % np.uint64(bound)).astype(np.int64)
            words[rejected] = self.words(rejected.size)

    def permutation(self, n: int) -> Ints:
        """Return [n] int64, a random order of 0..n-1."""
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
        """
        # One sort of words that hold class, random bits and index, from the top bit down. The
        # words are unique, so every sorting routine gives the same order.
        n = len(labels)
        index_bits = max(n - 1, 1).bit_length()
        class_bits = (n_classes - 1).bit_length()
        index_mask = np.uint64((1 << index_bits) - 1)
        keys = np.empty(n, np.uint64)
        for start in range(0, n, _BLOCK):  # block by block: no other array of n words is needed
            block = self.words(min(_BLOCK, n - start))
            stop = start + len(block)
            block >>= np.uint64(class_bits)
            block &= ~index_mask
            block |= np.arange(start, stop, dtype=np.uint64)
            if class_bits:  # a shift by 64 is undefined
                classes = labels[start:stop].astype(np.uint64)
                block |= classes << np.uint64(64 - class_bits)
            keys[start:stop] = block
        keys.sort()
        keys &= index_mask
        return keys.view(np.int64)

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
        if not 1e-9 <= beta <= 1e9:
            raise UsageError(
                f"beta is {beta}; the Dirichlet concentration must be above 0, from 1e-9 to 1e9 "
                "(0.1 is strong skew, 100 nearly none)"
            )
        n = 1
        for length in shape:
            n *= length
        # Gamma variates of a small beta are too small for a float: their logarithms are not.
        logs = self._log_gamma_variates(beta, n).reshape(shape)
        proportions = exact.exp(logs - logs.max(axis=-1, keepdims=True))
        proportions /= exact.add_in_order(proportions)
        return proportions

    def _log_gamma_variates(self, shape: float, n: int) -> Floats:
        """Return [n] logarithms of Gamma(shape) variates.

        Marsaglia and Tsang, ACM TOMS 26 (2000): d * v with v = (1 + c * x)**3 for a normal x, which
        is accepted with a probability that makes it a variate of Gamma(d + 1/3). A shape below 1
        by Gamma(shape + 1) * U**(1/shape).
        """
        boosted = shape + 1 if shape < 1 else shape
        d = boosted - 1 / 3
        c = 1 / float(np.sqrt(9 * d))
        log_d = float(exact.log(np.array([d]))[0])
        out = np.empty(n)
        for start in range(0, n, _BLOCK):
            block = out[start : start + _BLOCK]
            pending = np.arange(len(block))
            while pending.size:
                x = self.normal(pending.size)
                u = self.uniform(pending.size)
                v = 1 + c * x
                v = v * v * v
                log_v = exact.log(np.where(v > 0, v, 1.0))
                log_limit = 0.5 * x * x + d - d * v + d * log_v
                is_accepted = (v > 0) & (exact.log(u) < log_limit)
                block[pending[is_accepted]] = log_d + log_v[is_accepted]
                pending = pending[~is_accepted]
            if shape < 1:
                block += exact.log(self.uniform(len(block))) / shape
        return out


def _to_unit(words: Words) -> Floats:
    """Return the middle of the cell of (0, 1) that the upper 52 bits of each word number."""
    cells = (words >> np.uint64(12)).astype(np.float64)
    return cells * _CELL + _CELL / 2


_WORD = np.uint64(32)  # bits of Philox4x32's words, which are held in uint64
_MASK = np.uint64(0xFFFFFFFF)
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_KEY_STEPS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_ROUNDS = 10


def philox(
    key: int, counter: tuple[Words, Words, Words, Words]
) -> tuple[Words, Words, Words, Words]:
    """Return Philox4x32-10 of a key and 128-bit counters (Salmon et al., SC 2011).

    A word depends on key and counter alone, so that the noise of one example is the same however
    many are read with it.

    Parameters
    ----------
    key : int
        64 bits.
    counter : four arrays of uint64
        32-bit words of the counters, the lowest first.

    Returns
    -------
    four arrays of uint64
        32-bit words.
    """
    c0, c1, c2, c3 = counter
    k0 = np.uint64(key & 0xFFFFFFFF)
    k1 = np.uint64(key >> 32 & 0xFFFFFFFF)
    for _ in range(_ROUNDS):
        p0, p1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1 = (p1 >> _WORD) ^ c1 ^ k0, p1 & _MASK
        c2, c3 = (p0 >> _WORD) ^ c3 ^ k1, p0 & _MASK
        k0 = (k0 + _KEY_STEPS[0]) & _MASK
        k1 = (k1 + _KEY_STEPS[1]) & _MASK
    return c0, c1, c2, c3


def normal_field(key: int, rows: Ints, width: int) -> Floats:
    """Return [len(rows), width] standard normals.

    Row r, column j depends on `key`, `rows[r]` and j alone.
    """
    pairs = (width + 1) // 2  # one counter gives four words of 32 bits: two values
    row = np.repeat(rows.astype(np.uint64), pairs)
    column = np.tile(np.arange(pairs, dtype=np.uint64), len(rows))
    zero = np.zeros_like(row)
    a, b, c, d = philox(key, (column, row & _MASK, row >> _WORD, zero))
    first, second = a << _WORD | b, c << _WORD | d
    words = np.stack([first, second], axis=-1).reshape(len(rows), 2 * pairs)
    words = words[:, :width]
    values = exact.normal_quantile(_to_unit(words.reshape(-1)))
    return values.reshape(len(rows), width)


def normal_blocks(key: int, rows: Ints, width: int) -> Iterator[tuple[slice, Floats]]:
    """Yield (which of `rows`, their `normal_field`), a few rows at a time.

    So temporaries stay in the cache.
    """
    step = max(1, _FIELD_VALUES // max(width, 1))
    for start in range(0, len(rows), step):
        some = slice(start, min(start + step, len(rows)))
        yield some, normal_field(key, rows[some], width)
