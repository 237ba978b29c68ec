"""Means of the measures over parties and over pairs of parties."""

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from .measures import MEASURES

ALL_PAIRS = 2_000  # parties up to which every pair is looked at,
ALL_CELLS = 10_000_000  # if parties x parties x classes are no more than this
SAMPLED_PAIRS = 50_000  # otherwise, but
SAMPLED_CELLS = 3_000_000  # no more classes than this in all of them,
LEAST_PAIRS = 50  # with at least so many pairs
BIASED_PAIRS = 20_000  # for what small samples add; and
BIASED_CELLS = 500_000  # classes in all of them
_BLOCK = 1 << 17  # cells looked at together: they stay in the processor's cache

Key = tuple[str, str]  # a measure of labels and its form
Distance = Callable[[Any, Any], Floats]


class Table(NamedTuple):
    """The parties that hold something.

    counts: [P, K]; sizes: [P] int64, all above 0; g: [K] the classes of all together; w: [P] each party's share of the examples.
    """

    counts: NDArray[Any]
    sizes: Ints
    g: Floats
    w: Floats

    @classmethod
    def of(cls, counts: NDArray[Any]) -> Self:
        """The table of counts [P, K]; parties without examples are left out. Somebody holds something."""
        sizes = counts.sum(axis=1, dtype=np.int64)
        if not (held := sizes > 0).all():
            counts, sizes = counts[held], sizes[held]
        totals = counts.sum(axis=0, dtype=np.int64)
        return cls(counts, sizes, totals / totals.sum(), sizes / totals.sum())


class Loaded(NamedTuple):
    """A file of the folder."""

    module: ModuleType
    function: Callable[..., Any]


@cache
def loaded() -> dict[str, Loaded]:
    """Every measure, by name; the folder is looked at once, since a scale is asked for thousands of times."""
    return {name: Loaded(MEASURES.module(name), MEASURES.find(name)) for name in MEASURES.names()}


def of_kind(kind: str) -> dict[str, Loaded]:
    """The measures of a kind."""
    return {name: measure for name, measure in loaded().items() if kind_of(measure.module) == kind}


def kind_of(module: ModuleType) -> str:
    return str(module.KIND)


def distances() -> dict[str, Distance]:
    """f(p, q) of each measure that is a distance."""
    return {name: measure.function for name, measure in of_kind("distance").items()}


def of_parties(p: Floats, g: Floats) -> dict[Key, Floats]:
    """[...] for each measure that has one number a party, of distributions p [..., K] in a whole g."""
    found: dict[Key, Floats] = {(name, "to-global"): f(p, g) for name, f in distances().items()}
    return found | {(name, ""): measure.function(p) for name, measure in of_kind("labels").items()}


def scaled(key: Key, mean: float, g: Floats, w: Floats) -> float:
    """A mean on the scale of 0 to 1; 0 where nothing can differ (one party, one class)."""
    module = loaded()[key[0]].module
    if kind_of(module) == "labels":
        return float(module.scaled(mean, g, w))
    most = module.largest(g, w)[key[1] == "pairwise"]
    return float(mean / most) if most > 0 else 0.0


def bias_of_parties(p: Floats, sizes: Ints, g: Floats) -> dict[Key, Floats]:
    """[...] what small samples add to `of_parties`, for the measures that say it."""
    return {(name, "to-global"): f(p, g, sizes, None) for name, f in _biases().items()}


def bias_of_pairs(p: Floats, q: Floats, n: Ints, m: Ints) -> dict[Key, Floats]:
    """[...] what small samples add to the distance between p of n examples and q of m, for the measures that say it."""
    return {(name, "pairwise"): f(p, q, n, m) for name, f in _biases().items()}


def _biases() -> dict[str, Callable[..., Floats]]:
    return {
        name: measure.module.bias
        for name, measure in of_kind("distance").items()
        if hasattr(measure.module, "bias")
    }


def over_parties(table: Table) -> dict[Key, float]:
    """The mean of each measure over the parties, weighted by size."""
    return _mean(table, lambda p, _: of_parties(p, table.g))


def bias_over_all(table: Table, rng: Stream) -> dict[Key, float]:
    """What small samples add to the means over parties and pairs; of many pairs some are drawn."""
    found = _mean(table, lambda p, sizes: bias_of_parties(p, sizes, table.g))
    if len(table.sizes) == 1:
        return found
    i, j, weight = some_pairs(
        table.sizes, within(BIASED_PAIRS, BIASED_CELLS, table.counts.shape[1]), rng
    )
    step = max(1, _BLOCK // table.counts.shape[1])
    for start in range(0, len(i), step):
        a, b, w = (array[start : start + step] for array in (i, j, weight))
        p, q = (table.counts[rows] / table.sizes[rows, None] for rows in (a, b))
        for key, f in bias_of_pairs(p, q, table.sizes[a], table.sizes[b]).items():
            found[key] = found.get(key, 0.0) + float((w * f).sum())
    return found


def _mean(table: Table, of: Callable[[Floats, Ints], dict[Key, Floats]]) -> dict[Key, float]:
    """The mean over the parties, weighted by size, of what `of` says of proportions [B, K] and sizes [B]."""
    means: dict[Key, float] = {}
    step = max(1, _BLOCK // table.counts.shape[1])
    for start in range(0, len(table.counts), step):
        block = slice(start, start + step)
        for key, f in of(
            table.counts[block] / table.sizes[block, None], table.sizes[block]
        ).items():
            means[key] = means.get(key, 0.0) + float((table.w[block] * f).sum())
    return means


def over_pairs(table: Table, rng: Stream) -> tuple[dict[Key, float], dict[Key, float], int]:
    """(mean of each distance over pairs weighted by the product of sizes, its standard error from the sampling of pairs, pairs looked at)."""
    P, K = table.counts.shape
    if P <= ALL_PAIRS and P * P * K <= ALL_CELLS:
        return _every_pair(table), {}, P * (P - 1) // 2
    i, j = drawn_pairs(table.sizes, within(SAMPLED_PAIRS, SAMPLED_CELLS, K), rng)
    step = max(1, _BLOCK // K)
    seen: dict[str, list[Floats]] = {name: [] for name in distances()}
    for start in range(0, len(i), step):
        p, q = (
            table.counts[rows[start : start + step]] / table.sizes[rows[start : start + step], None]
            for rows in (i, j)
        )
        for name, f in distances().items():
            seen[name].append(f(p, q))
    found = {(name, "pairwise"): np.concatenate(parts) for name, parts in seen.items()}
    return (
        {k: float(d.mean()) for k, d in found.items()},
        {k: standard_error(d) for k, d in found.items()},
        len(i),
    )


def within(most: int, cells: int, K: int, least: int = LEAST_PAIRS) -> int:
    """How many pairs of K classes are looked at: `most`, fewer where they would have more cells together, but not below `least`."""
    return min(most, max(least, cells // K))


def standard_error(values: Floats) -> float:
    return float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0


def drawn_pairs(sizes: Ints, n: int, rng: Stream) -> tuple[Ints, Ints]:
    """n pairs i != j, drawn with probability in proportion to the product of their sizes. At least two sizes are above 0."""
    total = int(sizes.sum())
    chances = np.cumsum(sizes.astype(np.float64) * (total - sizes))
    i = np.asarray(np.searchsorted(chances, rng.uniform(n) * chances[-1], side="right"), np.int64)
    return i, partners(sizes, i, rng)


def some_pairs(sizes: Ints, most: int, rng: Stream) -> tuple[Ints, Ints, Floats]:
    """(i, j, weight that sums to 1): all pairs weighted by the product of their sizes, or `most` that are drawn so."""
    if len(sizes) * (len(sizes) - 1) // 2 > most:
        i, j = drawn_pairs(sizes, most, rng)
        return i, j, np.full(len(i), 1 / len(i))
    i, j = np.triu_indices(len(sizes), 1)
    weight = sizes[i].astype(np.float64) * sizes[j]
    return i, j, weight / weight.sum()


def partners(sizes: Ints, i: Ints, rng: Stream) -> Ints:
    """For each of the parties i another one, drawn in proportion to size."""
    ends = np.cumsum(sizes)
    at = (rng.uniform(len(i)) * (ends[-1] - sizes[i])).astype(
        np.int64
    )  # an example that is not of party i
    at += np.where(at >= ends[i] - sizes[i], sizes[i], 0)
    return np.asarray(np.searchsorted(ends, at, side="right"), np.int64)


def in_proportion(sizes: Ints, n: int) -> Ints:
    """[n] parties, as many in each range of sizes as it has examples: evenly spaced in the row of all examples, sorted by size of party."""
    order = np.argsort(sizes, kind="stable")
    ends = np.cumsum(sizes[order])
    return np.asarray(
        order[np.searchsorted(ends, (np.arange(n) + 0.5) / n * ends[-1], side="right")], np.int64
    )


def _every_pair(table: Table) -> dict[Key, float]:
    P, K = table.counts.shape
    p, w = table.counts / table.sizes[:, None], table.w
    apart = 1 - float((w * w).sum())  # the weight of all pairs of different parties
    sums = dict.fromkeys(distances(), 0.0)
    step = max(1, _BLOCK // (P * K))
    for start in range(0, P if P > 1 else 0, step):
        a, b = p[start : start + step, None], p[None, start:]
        weight = np.triu(w[start : start + step, None] * w[None, start:], 1)
        for name, f in distances().items():
            sums[name] += float((weight * f(a, b)).sum())
    return {(name, "pairwise"): 2 * s / apart if apart > 0 else 0.0 for name, s in sums.items()}
