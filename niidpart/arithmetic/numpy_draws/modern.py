"""What numpy's `np.random.default_rng(seed)` draws."""

import math
from typing import Any

import numpy as np

from ..exact import Floats
from .floats import exp_one, log1p_one, log_one, raise_one
from .layers import make_exponential_layers, make_normal_layers
from .tapes import WordTape

_CELL = 1.0 / 9007199254740992.0  # 2**-53
_WORD = 1 << 32
_STICKS_BELOW = 0.1  # concentrations below which numpy breaks a stick
_TINY = 3e-103


class ModernDraws:
    """What a `np.random.Generator` on PCG64 draws, method by method.

    Parameters
    ----------
    seed : int

    Examples
    --------
    >>> draws = ModernDraws(42)
    >>> draws.permutation(5)
    [4, 2, 3, 1, 0]
    """

    def __init__(self, seed: int):
        self._tape = WordTape(np.random.PCG64(seed).random_raw)
        self._half: int | None = None  # the upper half of a word whose lower one was used

    def uniform(self) -> float:
        """Return a float in [0, 1), as `random()`."""
        return (self._tape.read() >> 11) * _CELL

    def below(self, bound: int) -> int:
        """Return an integer 0..bound-1, as `integers(bound)`: Lemire, ACM TOMACS 29(1), 2019."""
        if bound == 1:
            return 0
        product = self._read_half() * bound
        rest = product % _WORD
        if rest < bound:
            threshold = (_WORD - bound) % bound
            while rest < threshold:
                product = self._read_half() * bound
                rest = product % _WORD
        return product // _WORD

    def shuffle(self, things: list[Any]) -> None:
        """Shuffle a list in place, as `shuffle` does a list or an array of one axis."""
        for i in range(len(things) - 1, 0, -1):
            mask = (1 << i.bit_length()) - 1
            j = self._read_half() & mask
            while j > i:
                j = self._read_half() & mask
            things[i], things[j] = things[j], things[i]

    def permutation(self, n: int) -> list[int]:
        """Return an order of 0..n-1, as `permutation(n)`."""
        order = list(range(n))
        self.shuffle(order)
        return order

    def choose(self, n: int, size: int) -> list[int]:
        """Return some of 0..n-1, n up to 10,000, as `choice(n, size, replace=False)`.

        Floyd's method: Bentley and Floyd, CACM 30(9), 1987.
        """
        chosen: list[int] = []
        for last in range(n - size, n):
            number = self.below(last + 1)
            chosen.append(last if number in chosen else number)
        for i in range(size - 1, 0, -1):  # `shuffle` draws its places in another way
            j = self.below(i + 1)
            chosen[i], chosen[j] = chosen[j], chosen[i]
        return chosen

    def dirichlet(self, alpha: float, n: int) -> Floats:
        """Return n proportions, as `dirichlet([alpha] * n)`."""
        if alpha < _STICKS_BELOW:
            return self._break_stick(alpha, n)
        gammas = [self.gamma(alpha) for _ in range(n)]
        total = 0.0
        for gamma in gammas:
            total += gamma
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.array(gammas) * (1.0 / np.float64(total))

    def gamma(self, shape: float) -> float:
        """Return a gamma variate, as `standard_gamma(shape)`; the shape is above 0."""
        if shape == 1:
            return self.exponential()
        if shape < 1:
            return self._draw_small_gamma(shape)
        return self._draw_large_gamma(shape)

    def beta(self, a: float, b: float) -> float:
        """Return a beta variate, as `beta(a, b)`; both are above 0."""
        if a > 1 or b > 1:
            first = self.gamma(a)
            return first / (first + self.gamma(b))
        if a < _TINY and b < _TINY:
            return float((a + b) * self.uniform() < a)
        while True:  # Joehnk, Metrika 8, 1964
            u, v = self.uniform(), self.uniform()
            x = raise_one(u, 1.0 / a)
            y = raise_one(v, 1.0 / b)
            if x + y <= 1 and u + v > 0:
                return x / (x + y) if x > 0 and y > 0 else _divide_by_logs(u, v, a, b)

    def exponential(self) -> float:
        """Return a standard exponential float: the ziggurat method."""
        layers = make_exponential_layers()
        while True:
            word = self._tape.read() >> 3
            layer, number = word & 0xFF, word >> 8
            x = number * layers.widths[layer]
            if number < layers.inner[layer]:
                return x
            if layer == 0:
                return layers.end - log1p_one(-self.uniform())
            height = layers.heights[layer]
            step = layers.heights[layer - 1] - height
            if step * self.uniform() + height < exp_one(-x):
                return x

    def normal(self) -> float:
        """Return a standard normal float: the ziggurat method."""
        layers = make_normal_layers()
        while True:
            word = self._tape.read()
            layer, sign, number = word & 0xFF, word >> 8 & 1, word >> 9 & 0xFFFFFFFFFFFFF
            x = number * layers.widths[layer]
            x = -x if sign else x
            if number < layers.inner[layer]:
                return x
            if layer == 0:
                beyond = self._draw_normal_tail(layers.end)
                return -beyond if number >> 8 & 1 else beyond
            height = layers.heights[layer]
            step = layers.heights[layer - 1] - height
            if step * self.uniform() + height < exp_one(-0.5 * x * x):
                return x

    def normals(self, n: int) -> Floats:
        """Return n standard normal floats, as `standard_normal(n)`.

        One word in eighty is not below the curve for sure: what stands between such words is made
        side by side, and each of them one by one.
        """
        layers = make_normal_layers()
        widths, inner = np.array(layers.widths), np.array(layers.inner, np.uint64)
        words = self._tape.peek(n)
        layer = (words & np.uint64(0xFF)).astype(np.int64)
        numbers = words >> np.uint64(9) & np.uint64(0xFFFFFFFFFFFFF)
        values = numbers.astype(np.float64) * widths[layer]
        values = np.where(words >> np.uint64(8) & np.uint64(1), -values, values)
        drawn, done, at = np.empty(n), 0, 0  # at: the first of the words that is unread
        for place in np.flatnonzero(numbers >= inner[layer]).tolist():
            if place < at:
                continue  # a word that an earlier float took
            run = min(place - at, n - done)
            drawn[done : done + run] = values[at : at + run]
            self._tape.skip(run)
            done, at = done + run, at + run
            if done == n:
                return drawn
            before = self._tape.position
            drawn[done] = self.normal()
            done, at = done + 1, at + self._tape.position - before
        run = max(0, min(n - at, n - done))  # the last float may have read beyond the words
        drawn[done : done + run] = values[at : at + run]
        self._tape.skip(run)
        for rest in range(done + run, n):
            drawn[rest] = self.normal()
        return drawn

    def _draw_normal_tail(self, end: float) -> float:
        """Return a normal float beyond the lowest layer: Marsaglia, Technometrics 6(1), 1964."""
        inverse = 1.0 / end
        while True:
            x = -log1p_one(-self.uniform()) * inverse
            y = -log1p_one(-self.uniform())
            if y + y > x * x:
                return end + x

    def _draw_small_gamma(self, shape: float) -> float:
        while True:
            u = self.uniform()
            exponential = self.exponential()
            beyond, base = 0.0, u
            if u > 1 - shape:
                beyond = -log_one((1 - u) / shape)
                base = 1 - shape + shape * beyond
            value = raise_one(base, 1 / shape)
            if value <= exponential + beyond:
                return value

    def _draw_large_gamma(self, shape: float) -> float:
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

    def _break_stick(self, alpha: float, n: int) -> Floats:
        """Return proportions broken off one by one, which small gamma variates cannot give."""
        rest = [0.0] * (n + 1)  # sums from the right
        for j in range(n - 1, -1, -1):
            rest[j] = rest[j + 1] + alpha
        proportions = np.empty(n)
        left = 1.0
        for j in range(n - 1):
            share = self.beta(alpha, rest[j + 1])
            proportions[j] = left * share
            left *= 1.0 - share
        proportions[n - 1] = left
        return proportions

    def _read_half(self) -> int:
        """Return 32 bits: the lower half of a word first, then the upper one."""
        if self._half is not None:
            half, self._half = self._half, None
            return half
        word = self._tape.read()
        self._half = word >> 32
        return word % _WORD


def _divide_by_logs(u: float, v: float, a: float, b: float) -> float:
    """Return u**(1/a) over the sum of it and v**(1/b), where one is too small for a float."""
    difference = log_one(u) / a - log_one(v) / b
    if difference > 0:
        return exp_one(-log_one(1.0 + exp_one(-difference)))
    return exp_one(difference - log_one(1.0 + exp_one(difference)))
