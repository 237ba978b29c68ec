"""The settings that a search tries: grids, random draws, Sobol's points, by seed. No torch."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from niidpart.arithmetic.exact import Floats, exp, log
from niidpart.arithmetic.rng import stream
from niidpart.errors import UsageError

from ...runs.grid import multiply_axes

METHODS = ("grid", "random", "sobol")
_DIGITS = 4  # of a drawn number: so many are written, and so many are trained
_BITS = 30  # of a coordinate of Sobol's points
_MOST_DRAWN = 1 << 16  # points, among which there are enough different ones

Point = dict[str, Any]


@dataclass(frozen=True)
class ListedWord:
    """A word whose values are listed."""

    word: str
    values: Sequence[Any]

    @property
    def size(self) -> float:
        """How many values there are."""
        return len(self.values)

    def find_values(self, shares: Floats) -> list[Any]:
        """Return the value at each share, from 0 to 1, of the list."""
        return [self.values[int(share * len(self.values))] for share in shares]


@dataclass(frozen=True)
class SpannedWord:
    """A word whose value lies between two numbers. is_log: uniform is its logarithm."""

    word: str
    low: float
    high: float
    is_log: bool
    is_whole: bool

    @property
    def size(self) -> float:
        """How many values there are."""
        return self.high - self.low + 1 if self.is_whole else math.inf

    def find_values(self, shares: Floats) -> list[Any]:
        """Return the value at each share of the span, from 0 to 1."""
        # Each whole number has the span up to the next one.
        high = self.high + 1 if self.is_whole else self.high
        if self.is_log:
            ends = log(np.array([self.low, high]))
            found = exp(ends[0] + shares * (ends[1] - ends[0]))
        else:
            found = self.low + shares * (high - self.low)
        return [self._round(float(value)) for value in found]

    def _round(self, value: float) -> float | int:
        if self.is_whole:
            return int(min(max(math.floor(value), self.low), self.high))
        return min(max(float(f"{value:.{_DIGITS}g}"), self.low), self.high)


SearchedWord = ListedWord | SpannedWord


def list_points(
    space: Sequence[SearchedWord],
    method: str,
    trials: int,
    seed: int,
) -> list[Point]:
    """Return so many different points of a space, the first ones of more trials.

    Words that spaces share have the same values in all of them, as long as they come first.
    UsageError where the space does not have as many.
    """
    size = math.prod(one.size for one in space)
    if size < trials:
        words = ", ".join(one.word for one in space)
        raise UsageError(
            f"{trials} trials are asked for, and {words} have {size:g} settings in all; "
            "give more values, or fewer trials"
        )
    found: dict[str, Point] = {}
    for point in _POINTS[method](space, trials, seed):
        found.setdefault(repr(point), point)
        if len(found) == trials:
            return list(found.values())
    raise UsageError(
        f"{trials} trials are asked for, and {_MOST_DRAWN} draws have {len(found)} different "
        "settings; give fewer trials, or method = 'grid'"
    )


def _list_grid(
    space: Sequence[SearchedWord],
    trials: int,
    seed: int,
) -> Iterator[Point]:
    """Yield every choice of a value from each list, the last word fastest."""
    lists = {one.word: one.values for one in space if isinstance(one, ListedWord)}
    yield from multiply_axes(lists)


def _draw_randomly(
    space: Sequence[SearchedWord],
    trials: int,
    seed: int,
) -> Iterator[Point]:
    def draw(n: int) -> list[Floats]:
        return [stream(seed, "tuning", one.word).uniform(n) for one in space]

    return _list_drawn(space, draw)


def _draw_sobol(
    space: Sequence[SearchedWord],
    trials: int,
    seed: int,
) -> Iterator[Point]:
    """Yield Sobol's points, each coordinate's digits changed by the seed.

    The points themselves are no version's business, and neither is the change: scipy's own way of
    scrambling is not used, since it may draw other numbers one day.
    """

    from scipy.stats import qmc  # which takes most of a second to load

    def draw(n: int) -> list[Floats]:
        sequence = qmc.Sobol(d=len(space), scramble=False, bits=_BITS)
        points = sequence.random_base2(n.bit_length() - 1)
        shares = []
        for place, one in enumerate(space):
            word = int(stream(seed, "tuning", "sobol", one.word).words(1)[0])
            cells = np.round(points[:, place] * (1 << _BITS)).astype(np.int64)
            changed = cells ^ (word >> (64 - _BITS))
            shares.append((changed + 0.5) / (1 << _BITS))
        return shares

    return _list_drawn(space, draw)


def _list_drawn(
    space: Sequence[SearchedWord], draw: Callable[[int], list[Floats]]
) -> Iterator[Point]:
    """Yield drawn points. draw: so many shares of each word, the first ones of any larger number.

    Twice as many are drawn where those so far were not enough.
    """
    n, told = 64, 0
    while n <= _MOST_DRAWN:
        values = [one.find_values(shares) for one, shares in zip(space, draw(n), strict=True)]
        for row in list(zip(*values, strict=True))[told:]:
            yield {one.word: value for one, value in zip(space, row, strict=True)}
        n, told = 2 * n, n


_POINTS = {"grid": _list_grid, "random": _draw_randomly, "sobol": _draw_sobol}
