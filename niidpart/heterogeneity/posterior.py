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
from .means import MeasureKey, evaluate_distances, evaluate_parties, scale_means
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
    p = _draw_distributions(table, who, R, rng)  # [R, S, K]
    if are_all:
        weight, w = table.sizes, table.w
        g = np.einsum("s,rsk->rk", w, p)
        narrower = 1.0
    else:
        # They were chosen in proportion to size, so each counts the same.
        weight = np.ones(S, np.int64)
        w = np.full(S, 1 / S)
        g = np.broadcast_to(table.g, (R, K))
        # The mean over all parties varies less than that over S of them: its variance is the sum
        # of w^2, that of the mean over S is 1 / S.
        narrower = float(np.sqrt(S * (table.w**2).sum()))
    n_pairs = limit_pairs(_PAIRS, CELLS, R * K, least=S)
    pairs = _choose_pairs_apart(who, weight, n_pairs, rng.child("pairs"))
    counts = table.counts[who].astype(np.float64)
    q = counts / counts.sum(axis=1, keepdims=True)
    measured = _average(q, table.g, w, pairs)
    truths = {}
    for key, drawn in _average(p, g[:, None], w, pairs).items():
        centre = drawn.mean()
        # What the sample was measured as, moved by what the truth is expected to differ from it.
        expected = point[key] + (centre - measured[key])
        means = expected + narrower * (drawn - centre)
        truths[key] = scale_means(key, means, g, table.w)
    return truths


def _draw_distributions(table: PartyCounts, who: Ints, R: int, rng: Stream) -> Floats:
    """Return [R, S, K]: distributions that the parties may have been drawn from."""
    held = np.flatnonzero(table.g)  # a Dirichlet has no class of weight 0
    g = table.g[held]
    q = table.counts[who][:, held].astype(np.float64)  # [S, held]
    A, error = fit_concentration(q, g)
    # How concentrated they are is not known either: log A is about normal.
    noise = error * rng.child("concentration").normal(R)
    A_drawn = np.clip(A * np.exp(noise), LOWEST, HIGHEST)  # [R]
    prior = A_drawn[:, None, None] * g
    drawn = draw_dirichlet(q + prior, rng.child("distributions"))
    p = np.zeros((R, len(who), table.counts.shape[1]))
    p[:, :, held] = drawn
    return p


def fit_concentration(counts: Floats, g: Floats) -> tuple[float, float]:
    """Return the A of the Dir(A g) from which counts [S, K] come most probably, and its error.

    A is within 1e-6 to 1e6. The error is the standard error of log A, by the curvature of the
    likelihood there, at most 1.
    """
    n = counts.sum(axis=1)  # [S]
    # Of the classes only those that a party holds: of the others the terms below are 0.
    rows, classes = np.nonzero(counts)
    q = counts[rows, classes]
    share = g[classes]

    # The likelihood of a party: Gamma(A) / Gamma(A + n), and Gamma(A g + q) / Gamma(A g) of each
    # of its classes.
    def slope(A: Floats, _: Ints) -> tuple[Floats, Floats]:
        Ag = A * share
        of_sizes = (digamma(A) - digamma(A + n)).sum()
        of_classes = (share * (digamma(Ag + q) - digamma(Ag))).sum()
        first = of_sizes + of_classes  # L'
        of_sizes = (trigamma(A) - trigamma(A + n)).sum()
        of_classes = (share**2 * (trigamma(Ag + q) - trigamma(Ag))).sum()
        second = of_sizes + of_classes  # L''
        f = A * first
        return f, f + A * A * second

    A = find_roots(slope, np.array([1.0]))
    _, bend = slope(A, np.zeros(1, np.int64))
    # Below 1 the likelihood is so flat that its parabola says nothing about log A.
    curvature = max(-float(bend[0]), 1.0)
    error = 1 / float(np.sqrt(curvature))
    return float(A[0]), error


def _choose_pairs_apart(who: Ints, sizes: Ints, most: int, rng: Stream) -> Pairs:
    """Return pairs of those that stand for all, none of a party with itself.

    A large party may stand for several, and its distance to itself is no distance of two parties.
    """
    i, j, weight = choose_pairs(sizes, most, rng)
    are_apart = who[i] != who[j]
    i, j, weight = i[are_apart], j[are_apart], weight[are_apart]
    if i.size:
        weight = weight / weight.sum()
    return Pairs(i, j, weight)


def _average(p: Floats, g: Floats, w: Floats, pairs: Pairs) -> dict[MeasureKey, Floats]:
    """Return [...] of p [..., S, K]: the means over parties with weights w [S], and over pairs."""
    parties = evaluate_parties(p, g)
    means = {key: (values * w).sum(axis=-1) for key, values in parties.items()}
    if pairs.i.size:
        a = p[..., pairs.i, :]
        b = p[..., pairs.j, :]
        for key, values in evaluate_distances(a, b, "pairwise").items():
            means[key] = (values * pairs.weight).sum(axis=-1)
    return means
