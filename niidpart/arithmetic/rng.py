"""Random numbers that stay the same for years. `stream(seed, *names)` is the only place that builds a generator.

numpy promises the integer words of its bit generators and nothing else, so a `Stream` takes raw words of Philox4x64-10 and turns
them into permutations, integers, normals and Dirichlet draws itself, with integer arithmetic and IEEE basic operations only.
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

_BLOCK = (
    1 << 16
)  # words or variates drawn at a time. For gamma variates it is part of the definition of a stream: another value gives other draws.
_VALUES = 1 << 18  # of a field drawn at a time
_CELL = 2.0**-52


def stream(
    seed: int, *names: str | int, given: Mapping[str, NDArray[Any]] | None = None
) -> "Stream":
    """The stream of random words that belongs to `seed` and `names`. Streams of different names are independent.

    `given` holds draws that were stored: `draw` returns these instead of drawing again (`niidpart verify` replays them).
    """
    text = json.dumps(["niidpart stream 1", seed, *names], separators=(",", ":"))
    return Stream(hashlib.sha256(text.encode()).digest(), given)


class Stream:
    """One named stream. Each method takes the words that it needs from where the last one stopped."""

    def __init__(self, key: bytes, given: Mapping[str, NDArray[Any]] | None = None):
        self._key = key
        self._given = given or {}
        self._bits = np.random.Philox(key=np.frombuffer(key[:16], "<u8").astype(np.uint64))

    def child(self, name: str) -> "Stream":
        """A stream of its own, whatever was drawn from this one before."""
        return Stream(hashlib.sha256(self._key + name.encode()).digest())

    def draw(self, name: str, sample: Callable[["Stream"], NDArray[Any]]) -> NDArray[Any]:
        """`sample(child stream)`, or the stored draw of that name where one was given."""
        if name in self._given:
            return self._given[name]
        return sample(self.child(name))

    def words(self, n: int) -> Words:
        """[n] raw 64-bit words."""
        words: Words = self._bits.random_raw(n)
        return words

    def uniform(self, n: int) -> Floats:
        """[n] float64 in the open interval (0, 1): the middles of 2**52 equal cells."""
        return _unit(self.words(n))

    def normal(self, n: int) -> Floats:
        """[n] standard normal float64."""
        return exact.normal_quantile(self.uniform(n))

    def integers(self, bound: int, n: int) -> Ints:
        """[n] int64, each uniform on 0..bound-1 (by rejection, so without bias)."""
        limit = np.uint64((1 << 64) // bound * bound - 1)
        words = self.words(n)
        while (bad := np.flatnonzero(words > limit)).size:
            words[bad] = self.words(bad.size)
        return (words % np.uint64(bound)).astype(np.int64)

    def permutation(self, n: int) -> Ints:
        """[n] int64, a random order of 0..n-1."""
        return self.grouped_permutation(np.zeros(n, np.int64), 1)

    def grouped_permutation(self, labels: Ints, n_classes: int) -> Ints:
        """[N] int64: all indices, those of class 0 first, then class 1, ..., in random order within each class.

        One sort of words that hold class, random bits and index, from the top bit down: the keys are unique, so every sorting
        routine gives the same order.
        """
        n = len(labels)
        low, high = max(n - 1, 1).bit_length(), (n_classes - 1).bit_length()
        keys = np.empty(n, np.uint64)
        for start in range(0, n, _BLOCK):  # block by block: no other array of n words is needed
            block = self.words(min(_BLOCK, n - start))
            block >>= np.uint64(high)
            block &= ~np.uint64((1 << low) - 1)
            block |= np.arange(start, start + len(block), dtype=np.uint64)
            if high:
                block |= labels[start : start + len(block)].astype(np.uint64) << np.uint64(
                    64 - high
                )
            keys[start : start + len(block)] = block
        keys.sort()
        keys &= np.uint64((1 << low) - 1)
        return keys.view(np.int64)

    def dirichlet(self, beta: float, shape: tuple[int, ...]) -> Floats:
        """`shape` float64: each row (last axis) is one draw from the symmetric Dir(beta); rows sum to 1 up to rounding."""
        if not 1e-9 <= beta <= 1e9:
            raise UsageError(
                f"beta is {beta}; the Dirichlet concentration must be above 0, from 1e-9 to 1e9 (0.1 is strong skew, 100 nearly none)"
            )
        logs = self._log_gamma_variates(beta, int(np.prod(shape))).reshape(shape)
        p = exact.exp(logs - logs.max(axis=-1, keepdims=True))
        p /= np.cumsum(
            p, axis=-1
        )[
            ..., -1:
        ]  # a cumulative sum adds in order; numpy's `sum` does so differently from version to version
        return p

    def _log_gamma_variates(self, shape: float, n: int) -> Floats:
        """[n] logarithms of Gamma(shape) variates: Marsaglia and Tsang, ACM TOMS 26 (2000); below 1 by Gamma(shape + 1) * U**(1/shape)."""
        boosted = shape + 1 if shape < 1 else shape
        d = boosted - 1 / 3
        c = 1 / float(np.sqrt(9 * d))
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
                accepted = (v > 0) & (exact.log(u) < 0.5 * x * x + d - d * v + d * log_v)
                block[pending[accepted]] = float(exact.log(np.array([d]))[0]) + log_v[accepted]
                pending = pending[~accepted]
            if shape < 1:
                block += exact.log(self.uniform(len(block))) / shape
        return out


def _unit(words: Words) -> Floats:
    return (words >> np.uint64(12)).astype(np.float64) * _CELL + _CELL / 2


_MASK = np.uint64(0xFFFFFFFF)
_PHILOX = (
    np.uint64(0xD2511F53),
    np.uint64(0xCD9E8D57),
    np.uint64(0x9E3779B9),
    np.uint64(0xBB67AE85),
)


def philox(
    key: int, counter: tuple[Words, Words, Words, Words]
) -> tuple[Words, Words, Words, Words]:
    """Philox4x32-10 (Salmon et al., SC 2011) on arrays: four 32-bit words, held in uint64, for each 128-bit counter.

    A word depends on key and counter alone, so that the noise of one example is the same however many are read with it.
    """
    m0, m1, w0, w1 = _PHILOX
    c0, c1, c2, c3 = counter
    k0, k1 = np.uint64(key & 0xFFFFFFFF), np.uint64(key >> 32 & 0xFFFFFFFF)
    for _ in range(10):
        p0, p1 = c0 * m0, c2 * m1
        c0, c1, c2, c3 = (
            (p1 >> np.uint64(32)) ^ c1 ^ k0,
            p1 & _MASK,
            (p0 >> np.uint64(32)) ^ c3 ^ k1,
            p0 & _MASK,
        )
        k0, k1 = (k0 + w0) & _MASK, (k1 + w1) & _MASK
    return c0, c1, c2, c3


def normal_field(key: int, rows: Ints, width: int) -> Floats:
    """[len(rows), width] standard normals; row r, column j depends on `key`, `rows[r]` and j alone."""
    pairs = (width + 1) // 2
    row = np.repeat(rows.astype(np.uint64), pairs)
    column = np.tile(np.arange(pairs, dtype=np.uint64), len(rows))
    zero = np.zeros_like(row)
    a, b, c, d = philox(key, (column, row & _MASK, row >> np.uint64(32), zero))
    words = np.stack([a << np.uint64(32) | b, c << np.uint64(32) | d], axis=-1).reshape(
        len(rows), 2 * pairs
    )
    return exact.normal_quantile(_unit(words[:, :width].reshape(-1))).reshape(len(rows), width)


def normal_blocks(key: int, rows: Ints, width: int) -> Iterator[tuple[slice, Floats]]:
    """(which of `rows`, their `normal_field`), a few rows at a time, so that temporaries stay in the cache."""
    step = max(1, _VALUES // max(width, 1))
    for start in range(0, len(rows), step):
        some = slice(start, min(start + step, len(rows)))
        yield some, normal_field(key, rows[some], width)
