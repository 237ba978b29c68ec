"""What the parties may be like, given what they hold: a class that a small party lacks need not have the probability 0.

Empirical Bayes. A party's distribution is taken as drawn from Dir(A g), with g that of all together and the A under which the counts are
most probable (Minka, Estimating a Dirichlet distribution, 2000, section 3). Given its counts q it is then Dir(A g + q).
"""

import numpy as np

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from .chance import CELLS, extent
from .concentration import HIGHEST, LOWEST, digamma, solve, trigamma
from .means import Key, Table, distances, in_proportion, of_parties, scaled, some_pairs, within
from .resample import dirichlet


def truths(table: Table, point: dict[Key, float], rng: Stream) -> dict[Key, Floats]:
    """[R] of each measure, scaled: its value for endless parties, of which the counts of `table` may be a sample.

    Of many parties, S stand for all as in the bootstrap: the mean is that of all, the spread is brought from S to P.
    """
    P, K = table.counts.shape
    S, R = extent(P, K)
    who = np.arange(P) if S == P else in_proportion(table.sizes, S)
    w = table.w if S == P else np.full(S, 1 / S)
    counts = table.counts[who].astype(np.float64)
    held = np.flatnonzero(table.g)
    a, error = concentration(counts[:, held], table.g[held])
    each = np.clip(
        a * np.exp(error * rng.child("concentration").normal(R)), LOWEST, HIGHEST
    )  # [R] how concentrated they are is not known either
    shapes = counts[:, held] + each[:, None, None] * table.g[held]
    drawn = np.zeros((R, S, K))
    drawn[:, :, held] = dirichlet(shapes, rng.child("distributions"))
    g = np.einsum("s,rsk->rk", w, drawn) if S == P else np.broadcast_to(table.g, (R, K))
    pairs = _pairs(
        who,
        table.sizes[who] if S == P else np.ones(S, np.int64),
        within(500, CELLS, R * K, least=S),
        rng.child("pairs"),
    )
    found, as_held = (
        _means(drawn, g[:, None], w, pairs),
        _means(counts / counts.sum(axis=1, keepdims=True), table.g, w, pairs),
    )
    narrower = (
        1.0 if S == P else float(np.sqrt(S * (table.w**2).sum()))
    )  # the mean over all parties varies less than that over S
    out = {}
    for key, f in found.items():
        centre = f.mean()
        means = point[key] + (centre - as_held[key]) + narrower * (f - centre)
        out[key] = np.array(
            [scaled(key, m, h, table.w) for m, h in zip(means.tolist(), g, strict=True)]
        )
    return out


def concentration(counts: Floats, g: Floats) -> tuple[float, float]:
    """(A of the Dir(A g) from which counts [S, K] come most probably, within 1e-6 to 1e6; the standard error of its logarithm, at most 1)."""
    n = counts.sum(axis=1)
    rows, classes = np.nonzero(counts)
    q, share = counts[rows, classes], g[classes]

    def slope(a: Floats, _: Ints) -> tuple[Floats, Floats]:
        at = a * share
        first = (digamma(a) - digamma(a + n)).sum() + (
            share * (digamma(at + q) - digamma(at))
        ).sum()
        second = (trigamma(a) - trigamma(a + n)).sum() + (
            share**2 * (trigamma(at + q) - trigamma(at))
        ).sum()
        return a * first, a * first + a * a * second

    a = solve(slope, np.array([1.0]))
    curvature = -float(slope(a, np.zeros(1, np.int64))[1][0])
    return float(a[0]), 1 / float(np.sqrt(max(curvature, 1.0)))


def _pairs(who: Ints, sizes: Ints, most: int, rng: Stream) -> tuple[Ints, Ints, Floats]:
    """(i, j, weight): pairs of those that stand for all, without a party beside itself where a large one does so twice."""
    i, j, weight = some_pairs(sizes, most, rng)
    kept = who[i] != who[j]
    return i[kept], j[kept], weight[kept] / weight[kept].sum() if kept.any() else weight[kept]


def _means(p: Floats, g: Floats, w: Floats, pairs: tuple[Ints, Ints, Floats]) -> dict[Key, Floats]:
    """[...] of p [..., S, K]: the means over parties with weights w, and over pairs."""
    i, j, weight = pairs
    found = {key: (f * w).sum(axis=-1) for key, f in of_parties(p, g).items()}
    if i.size:
        a, b = p[..., i, :], p[..., j, :]
        found |= {
            (name, "pairwise"): (f(a, b) * weight).sum(axis=-1) for name, f in distances().items()
        }
    return found
