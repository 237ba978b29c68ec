"""What numpy's `np.random.seed(seed)` and the functions of `np.random` draw."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import exact
from ..exact import Floats
from ..words import Ints, Words
from .floats import exp_one, log_one, raise_one
from .mersenne import open_seeded

_WHOLE = 9007199254740992.0  # 2**53


class LegacyDraws:
    """What a `np.random.RandomState(seed)` draws, method by method.

    Parameters
    ----------
    seed : int
        0..2**32-1.

    Examples
    --------
    >>> draws = LegacyDraws(0)
    >>> draws.permutation(5)
    [2, 0, 1, 3, 4]
    >>> draws.below(10)
    3
    """

    def __init__(self, seed: int):
        self._tape = open_seeded(seed)
        self._spare: float | None = None  # normals are made in pairs

    def uniform(self) -> float:
        """Return a float in [0, 1), as `uniform()` and `random_sample()`."""
        high = self._tape.read() >> 5
        low = self._tape.read() >> 6
        return (high * 67108864.0 + low) / _WHOLE

    def uniforms(self, n: int) -> Floats:
        """Return what n calls of `uniform` do."""
        return _to_unit(self._tape.take(2 * n))

    def below(self, bound: int) -> int:
        """Return an integer 0..bound-1, as `randint(bound)`."""
        most = bound - 1
        if not most:
            return 0
        mask = (1 << most.bit_length()) - 1
        number = self._tape.read() & mask
        while number > most:
            number = self._tape.read() & mask
        return number

    def shuffle(self, things: list[Any]) -> None:
        """Shuffle a list in place, as `shuffle` does a list or an array of one axis."""
        places = self._draw_places(len(things))
        for i, j in zip(range(len(things) - 1, 0, -1), places.tolist(), strict=True):
            things[i], things[j] = things[j], things[i]

    def permutation(self, n: int) -> list[int]:
        """Return an order of 0..n-1, as `permutation(n)`."""
        order = list(range(n))
        self.shuffle(order)
        return order

    def choose(self, n: int, size: int) -> list[int]:
        """Return some of 0..n-1, as `choice(n, size, replace=False)`."""
        return self.permutation(n)[:size]

    def dirichlet(self, alpha: float, n: int) -> Floats:
        """Return n proportions, as `dirichlet([alpha] * n)`."""
        gammas = self.gammas(alpha, n)
        total = exact.add_in_order(gammas)
        with np.errstate(divide="ignore", invalid="ignore"):
            return gammas * (1 / total)

    def gammas(self, shape: float, n: int) -> Floats:
        """Return n gamma variates, as `standard_gamma(shape, n)`; the shape is above 0."""
        if shape == 1:
            return np.array([-log_one(1 - unit) for unit in self.uniforms(n).tolist()])
        if shape < 1:
            return np.array([self._draw_small_gamma(shape) for _ in range(n)])
        return np.array([self._draw_large_gamma(shape) for _ in range(n)])

    def lognormals(self, mean: float, sigma: float, n: int) -> Floats:
        """Return n variates, as `lognormal(mean, sigma, n)`."""
        return np.array([exp_one(mean + sigma * self.normal()) for _ in range(n)])

    def normal(self) -> float:
        """Return a standard normal float: Marsaglia's polar method."""
        if self._spare is not None:
            spare, self._spare = self._spare, None
            return spare
        square = 2.0
        while square >= 1 or square == 0:
            x = 2 * self.uniform() - 1
            y = 2 * self.uniform() - 1
            square = x * x + y * y
        factor = math.sqrt(-2 * log_one(square) / square)
        self._spare = factor * x
        return factor * y

    def _draw_places(self, n: int) -> Ints:
        """Return an integer 0..i for each i from n - 1 down to 1.

        Each takes one word, cut to as many bits as i has, and another one while it is too large.
        """
        places = np.empty(max(n - 1, 0), np.int64)
        most, done = n - 1, 0
        while most > 0:
            mask = (1 << most.bit_length()) - 1
            fewer_bits = mask >> 1  # from here on i has a bit less
            words = self._tape.peek((most - fewer_bits) * 3 // 2 + 8)
            numbers = (words & np.uint64(mask)).view(np.int64)
            taken = np.flatnonzero(_take_in_turn(numbers, most))[: most - fewer_bits]
            is_last = len(taken) == most - fewer_bits
            self._tape.skip(int(taken[-1]) + 1 if is_last else len(words))
            places[done : done + len(taken)] = numbers[taken]
            done, most = done + len(taken), most - len(taken)
        return places

    def _draw_small_gamma(self, shape: float) -> float:
        """Ahrens and Dieter, Computing 12, 1974."""
        while True:
            u = self.uniform()
            exponential = -log_one(1 - self.uniform())
            beyond, base = 0.0, u
            if u > 1 - shape:
                beyond = -log_one((1 - u) / shape)
                base = 1 - shape + shape * beyond
            value = raise_one(base, 1 / shape)
            if value <= exponential + beyond:
                return value

    def _draw_large_gamma(self, shape: float) -> float:
        """Marsaglia and Tsang, ACM TOMS 26(3), 2000."""
        b = shape - 1.0 / 3.0
        c = 1.0 / math.sqrt(9 * b)
        while True:
            x = self.normal()
            v = 1.0 + c * x
            if v <= 0:
                continue
            v = v * v * v
            u = self.uniform()
            if u < 1.0 - 0.0331 * (x * x) * (x * x):
                return b * v
            if log_one(u) < 0.5 * x * x + b * (1.0 - v + log_one(v)):
                return b * v


def _to_unit(words: Words) -> Floats:
    """Return the float in [0, 1) of each pair of words."""
    high = words[::2] >> np.uint64(5)
    low = words[1::2] >> np.uint64(6)
    return (high * 67108864.0 + low) / _WHOLE


def _take_in_turn(numbers: Ints, most: int) -> NDArray[np.bool_]:
    """Return which numbers are taken, where each has to be at most what is then the bound.

    The bound begins at `most`, and is one less after each that was taken. Guessed at once and
    mended until nothing changes: what stands before the first wrong guess is right.
    """
    is_taken = numbers <= most
    while True:
        bounds = most + 1 - np.cumsum(is_taken, dtype=np.int64)
        mended = numbers < bounds + is_taken
        if np.array_equal(mended, is_taken):
            return is_taken
        is_taken = mended
