"""What the parties may be like, given what they hold.

A class that a small party lacks need not have the probability 0 there, and the bootstrap cannot
draw it. Empirical Bayes can: a party's distribution is taken as drawn from Dir(A g), with g that of
all together and the A under which the counts are most probable (Minka, Estimating a Dirichlet
distribution, 2000, section 3). Given its counts q it is then Dir(A g + q).
"""

import numpy as np

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from .chance import CELLS, StandIns
from .means import MeasureKey, evaluate_distances, evaluate_parties, scale_mean
from .polygamma import digamma, trigamma
from .resample import draw_dirichlet
from .roots import HIGHEST, LOWEST, find_roots
from .tables import Pairs, PartyCounts, choose_pairs, limit_pairs

_PAIRS = 500  # looked at in each replicate, or as many as there are parties


def draw_truths(
    table: PartyCounts, point: dict[MeasureKey, float], rng: Stream
) -> dict[MeasureKey, Floats]:
    """Return values [R] that each measure may truly have, scaled.

    They are its values for parties of endless examples, of which the counts of `table` may be a
    sample. Of many parties, S stand for all as in the bootstrap: the mean is that of all, the
    spread is brought from S to P.

    point: the means that were measured.
    """
    K = table.counts.shape[1]
    who, R, are_all = StandIns.of(table)
    S = len(who)
    if are_all:
        weight, w = table.sizes, table.w
    else:  # they were chosen in proportion to size, so each counts the same
        weight, w = np.ones(S, np.int64), np.full(S, 1 / S)
    p = _draw_distributions(table, who, R, rng)
    g = np.einsum("s,rsk->rk", w, p) if are_all else np.broadcast_to(table.g, (R, K))
    n_pairs = limit_pairs(_PAIRS, CELLS, R * K, least=S)
    pairs = _choose_pairs_apart(who, weight, n_pairs, rng.child("pairs"))
    counts = table.counts[who].astype(np.float64)
    as_held = _average(counts / counts.sum(axis=1, keepdims=True), table.g, w, pairs)
    # The mean over all parties varies less than that over S of them.
    narrower = 1.0 if are_all else float(np.sqrt(S * (table.w**2).sum()))
    truths = {}
    for key, drawn in _average(p, g[:, None], w, pairs).items():
        centre = drawn.mean()
        # What the sample was measured as, moved by what the truth is expected to differ from it.
        means = point[key] + (centre - as_held[key]) + narrower * (drawn - centre)
        pieces = zip(means.tolist(), g, strict=True)
        truths[key] = np.array([scale_mean(key, mean, whole, table.w) for mean, whole in pieces])
    return truths


def _draw_distributions(table: PartyCounts, who: Ints, R: int, rng: Stream) -> Floats:
    """Return [R, S, K]: distributions that the parties may have been drawn from."""
    held = np.flatnonzero(table.g)  # a Dirichlet has no class of weight 0
    counts = table.counts[who][:, held].astype(np.float64)
    g = table.g[held]
    a, error = fit_concentration(counts, g)
    # How concentrated they are is not known either: log A is about normal.
    noise = error * rng.child("concentration").normal(R)
    each = np.clip(a * np.exp(noise), LOWEST, HIGHEST)
    shapes = counts + each[:, None, None] * g
    p = np.zeros((R, len(who), table.counts.shape[1]))
    p[:, :, held] = draw_dirichlet(shapes, rng.child("distributions"))
    return p


def fit_concentration(counts: Floats, g: Floats) -> tuple[float, float]:
    """Return the A of the Dir(A g) from which counts [S, K] come most probably, and its error.

    A is within 1e-6 to 1e6. The error is the standard error of log A, by the curvature of the
    likelihood there, at most 1.
    """
    n = counts.sum(axis=1)
    rows, classes = np.nonzero(counts)
    q, share = counts[rows, classes], g[classes]

    def slope(a: Floats, _: Ints) -> tuple[Floats, Floats]:
        at = a * share
        first = (digamma(a) - digamma(a + n)).sum()
        first = first + (share * (digamma(at + q) - digamma(at))).sum()
        second = (trigamma(a) - trigamma(a + n)).sum()
        second = second + (share**2 * (trigamma(at + q) - trigamma(at))).sum()
        return a * first, a * first + a * a * second

    a = find_roots(slope, np.array([1.0]))
    _, bend = slope(a, np.zeros(1, np.int64))
    curvature = max(-float(bend[0]), 1.0)
    return float(a[0]), 1 / float(np.sqrt(curvature))


def _choose_pairs_apart(who: Ints, sizes: Ints, most: int, rng: Stream) -> Pairs:
    """Return pairs of those that stand for all, none of a party with itself.

    A large party may stand for several, and its distance to itself is no distance of two parties.
    """
    i, j, weight = choose_pairs(sizes, most, rng)
    apart = who[i] != who[j]
    if not apart.any():
        return Pairs(i[apart], j[apart], weight[apart])
    return Pairs(i[apart], j[apart], weight[apart] / weight[apart].sum())


def _average(p: Floats, g: Floats, w: Floats, pairs: Pairs) -> dict[MeasureKey, Floats]:
    """Return [...] of p [..., S, K]: the means over parties with weights w [S], and over pairs."""
    parties = evaluate_parties(p, g)
    means = {key: (values * w).sum(axis=-1) for key, values in parties.items()}
    if pairs.i.size:
        a, b = p[..., pairs.i, :], p[..., pairs.j, :]
        for key, values in evaluate_distances(a, b, "pairwise").items():
            means[key] = (values * pairs.weight).sum(axis=-1)
    return means
