"""The table of counts that all measures start from, and how some of its parties stand for all."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError

LEAST_PAIRS = 50  # are looked at, however many classes they have


class PartyCounts(NamedTuple):
    """The parties that hold something.

    counts: [P, K]. sizes: [P] int64, all above 0. g: [K] shares of the classes in all together.
    w: [P] each party's share of the examples.
    """

    counts: NDArray[Any]
    sizes: Ints
    g: Floats
    w: Floats

    @classmethod
    def of(cls, counts: NDArray[Any]) -> Self:
        """Return the table of counts [P, K], of which one at least is above 0.

        Parties without examples are left out.
        """
        sizes = counts.sum(axis=1, dtype=np.int64)
        has_some = sizes > 0
        if not has_some.all():
            counts, sizes = counts[has_some], sizes[has_some]
        totals = counts.sum(axis=0, dtype=np.int64)
        n = totals.sum()
        return cls(counts=counts, sizes=sizes, g=totals / n, w=sizes / n)

    def proportions(self, rows: Ints | slice) -> Floats:
        """Return the proportions [..., K] of the classes at some parties."""
        p: Floats = self.counts[rows] / self.sizes[rows, None]
        return p


class Pairs(NamedTuple):
    """Pairs of different parties i and j, with weights that sum to 1."""

    i: Ints
    j: Ints
    weight: Floats


def require_counts(counts: NDArray[Any]) -> NDArray[Any]:
    """Return the table of counts [P, K]; UsageError for anything else."""
    counts = np.asarray(counts)
    if counts.ndim != 2 or counts.dtype.kind not in "iu" or not counts.shape[1]:
        came = f"{counts.dtype}{list(counts.shape)}"
        raise UsageError(f"counts are {came}; a table [parties, classes] of integers is needed")
    if counts.size and counts.min() < 0:
        raise UsageError(f"counts go down to {counts.min()}; they must be 0 or more")
    return counts


def limit_pairs(most: int, cells: int, K: int, least: int = LEAST_PAIRS) -> int:
    """Return how many pairs of K classes are looked at.

    `most`, fewer where they would have more than `cells` classes together, but not below `least`.
    """
    return min(most, max(least, cells // K))


def draw_pairs(sizes: Ints, n: int, rng: Stream) -> tuple[Ints, Ints]:
    """Draw n pairs i != j, with probabilities in proportion to the product of their sizes.

    At least two sizes are above 0.
    """
    others = int(sizes.sum()) - sizes
    # Party i is the first of a pair in proportion to its size times that of all others.
    weight = sizes.astype(np.float64) * others
    ends = np.cumsum(weight)
    points = rng.uniform(n) * ends[-1]
    i = _find_party(ends, points)
    return i, draw_partners(sizes, i, rng)


def choose_pairs(sizes: Ints, most: int, rng: Stream) -> Pairs:
    """Return all pairs, weighted by the product of their sizes, or `most` that are drawn so."""
    P = len(sizes)
    n_pairs = P * (P - 1) // 2
    if n_pairs > most:
        # Drawn in proportion to their weight: each counts the same.
        i, j = draw_pairs(sizes, most, rng)
        same = np.full(most, 1 / most)
        return Pairs(i, j, same)
    i, j = np.triu_indices(P, 1)
    # As float: a product of two sizes may be beyond int64.
    weight = sizes[i].astype(np.float64) * sizes[j]
    return Pairs(i, j, weight / weight.sum())


def draw_partners(sizes: Ints, i: Ints, rng: Stream) -> Ints:
    """Draw for each of the parties i another one, in proportion to size."""
    ends = np.cumsum(sizes)
    n_own = sizes[i]
    n_others = ends[-1] - n_own
    # One of the examples that party i does not have, counted without those of party i ...
    example = (rng.uniform(len(i)) * n_others).astype(np.int64)
    # ... then counted with them, and whose it is.
    begin = ends[i] - n_own
    example += np.where(example >= begin, n_own, 0)
    return _find_party(ends, example)


def choose_in_proportion(sizes: Ints, n: int) -> Ints:
    """Return n parties, as many in each range of sizes as it has examples.

    They are those of n examples that are evenly spaced in the row of all, sorted by size of party.
    A large party may come several times.
    """
    order = np.argsort(sizes, kind="stable")
    ends = np.cumsum(sizes[order])
    middles = (np.arange(n) + 0.5) / n  # of n equal parts of 0 to 1
    examples = middles * ends[-1]
    parties: Ints = order[_find_party(ends, examples)]
    return parties


def _find_party(ends: NDArray[Any], points: NDArray[Any]) -> Ints:
    """Return the party whose stretch of the row of all holds each point, given where they end.

    From the right, so that a point at the very end of a stretch is in the next one.
    """
    return np.asarray(np.searchsorted(ends, points, side="right"), np.int64)
