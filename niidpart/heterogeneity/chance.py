"""What chance alone makes of the measures.

Their spread when each party's examples are drawn again (bootstrap), and their values in IID deals.
"""

from typing import NamedTuple, Self

import numpy as np

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from .means import (
    MeasureKey,
    estimate_bias,
    evaluate_distances,
    evaluate_parties,
    scale_mean,
)
from .resample import draw_deals, draw_multinomial
from .tables import (
    PartyCounts,
    choose_in_proportion,
    choose_pairs,
    draw_pairs,
    draw_partners,
    limit_pairs,
)

REPLICATES = 200
FEW = 50  # replicates, where they are large; of still larger ones LEAST
LEAST = 5
RESAMPLED = 10_000  # cells (parties x classes) that a replicate draws, at most
CELLS = 500_000  # that all replicates together draw, and all deals; pairs look at twice as many
PARTNERS = 4  # of each resampled party, for pairwise measures; 1 where replicates are few
DEALT = 30_000  # cells that an IID deal draws
DEALS = 3  # at least
DEALT_PAIRS = 2_000  # looked at in each deal, at most


class StandIns(NamedTuple):
    """The parties that stand for all in a replicate, and how many replicates there are.

    parties: [S], all of them or some in proportion to size. are_all: whether they are all.
    """

    parties: Ints
    n_replicates: int
    are_all: bool

    @classmethod
    def of(cls, table: PartyCounts) -> Self:
        P, K = table.counts.shape
        S, R = limit_replicates(P, K)
        if S == P:
            return cls(np.arange(P), R, True)
        return cls(choose_in_proportion(table.sizes, S), R, False)


def limit_replicates(P: int, K: int) -> tuple[int, int]:
    """Return (parties that stand for all in a replicate, replicates).

    200 replicates of all parties; less of both where they are more than CELLS together, so that
    the time is bounded however large the table is.
    """
    S = min(P, max(20, min(RESAMPLED // K, 500)))
    if FEW * S * K > CELLS:
        S = min(S, max(2, CELLS // (FEW * K)))
    R = min(REPLICATES, CELLS // (S * K))
    return S, max(LEAST, R)


def bootstrap_deviations(
    table: PartyCounts, point: dict[MeasureKey, float], rng: Stream
) -> dict[MeasureKey, Floats]:
    """Return how far each measure is from its mean in replicates [R], scaled.

    In a replicate each party's examples are drawn again, with replacement. Its mean is the sum of
    what its parties add to it. Of many parties, S stand for all: taken in proportion to their
    shares w, each with the factor 1 / sqrt(w S), with which the variance of the sum is that of all.
    In a pairwise mean a party is resampled against PARTNERS others as they are, which is exact to
    first order.

    point: the means that were measured, about which the replicates lie.
    """
    P, K = table.counts.shape
    who, R, are_all = StandIns.of(table)
    S = len(who)
    factor = np.ones(P) if are_all else 1 / np.sqrt(table.w[who] * S)
    rows = np.tile(who, R)
    counts = table.counts[rows].astype(np.int64)
    drawn = draw_multinomial(table.sizes[rows], counts, rng.child("counts"))
    p = (drawn / table.sizes[rows, None]).reshape(R, S, K)
    g = np.einsum("s,rsk->rk", table.w, p) if are_all else np.broadcast_to(table.g, (R, K))
    moves = {}
    for key, values in evaluate_parties(p, g[:, None]).items():
        moves[key] = _sum_deviations(values, table.w[who] * factor)
    if P > 1:
        w = table.w
        # the weight of the pairs that a party is in, halved
        in_pairs = w * (1 - w) / (1 - float((w * w).sum()))
        distances = _compare_with_partners(table, p, who, rng.child("partners"))
        for key, values in distances.items():
            moves[key] = 2 * _sum_deviations(values, in_pairs[who] * factor)
    deviations = {}
    for key, moved in moves.items():
        means = zip(point[key] + moved, g, strict=True)
        scaled = np.array([scale_mean(key, mean, whole, table.w) for mean, whole in means])
        deviations[key] = np.asarray(scaled - scaled.mean())
    return deviations


def _sum_deviations(values: Floats, coefficient: Floats) -> Floats:
    """Return [R]: the sum over parties of coefficient * (values [R, S] less their mean over R)."""
    deviation = values - values.mean(axis=0)
    total: Floats = (deviation * coefficient).sum(axis=1)
    return total


def _compare_with_partners(
    table: PartyCounts, p: Floats, who: Ints, rng: Stream
) -> dict[MeasureKey, Floats]:
    """Return [R, S]: the mean distance of each resampled party to PARTNERS others."""
    total: dict[MeasureKey, Floats] = {}
    n = PARTNERS if len(p) >= REPLICATES else 1
    for _ in range(n):
        q = table.proportions(draw_partners(table.sizes, who, rng))
        for key, values in evaluate_distances(p, q, "pairwise").items():
            total[key] = total.get(key, 0.0) + values / n
    return total


class DealtValues(NamedTuple):
    """The values [R] of each measure in R deals, scaled.

    values: as measured. less_bias: less what small samples add by the measure's own account.
    """

    values: dict[MeasureKey, Floats]
    less_bias: dict[MeasureKey, Floats]


def measure_deals(table: PartyCounts, rng: Stream) -> DealtValues:
    """Return the measures in deals of all examples, regardless of class, to parties as large.

    They are what an IID split with as few examples would show.
    """
    who, weight, R = _choose_dealt(table)
    K = table.counts.shape[1]
    sizes = table.sizes[who]
    totals = table.counts.sum(axis=0, dtype=np.int64)
    p = draw_deals(sizes, totals, R, rng.child("deals")) / sizes[:, None]
    share = weight / weight.sum()
    parties = evaluate_parties(p, table.g)
    means = {key: (values * share).sum(axis=1) for key, values in parties.items()}
    added = estimate_bias(p, table.g, sizes, None, "to-global")
    bias = {key: (values * share).sum(axis=1) for key, values in added.items()}
    if len(who) > 1:
        n_pairs = limit_pairs(DEALT_PAIRS, 2 * CELLS, R * K, least=2)
        i, j, w = _choose_pairs_of_deals(weight, R, n_pairs, rng.child("pairs"))
        deal = np.arange(R)[:, None]
        a, b = p[deal, i], p[deal, j]
        for key, values in evaluate_distances(a, b, "pairwise").items():
            means[key] = (w * values).sum(axis=1)
        for key, values in estimate_bias(a, b, sizes[i], sizes[j], "pairwise").items():
            bias[key] = (w * values).sum(axis=1)
    scaled = {key: _scale_all(key, mean, table) for key, mean in means.items()}
    less_bias = dict(scaled)
    for key, mean in bias.items():
        less_bias[key] = _scale_all(key, means[key] - mean, table)
    return DealtValues(values=scaled, less_bias=less_bias)


def _choose_dealt(table: PartyCounts) -> tuple[Ints, Ints, int]:
    """Return (parties that are dealt to, the weight of each, number of deals).

    Of many parties some stand for all, in proportion to size: a large one may stand for several.
    """
    P, K = table.counts.shape
    S = min(P, max(2, min(max(50, DEALT // K), CELLS // (DEALS * K))))
    if S == P:
        who, weight = np.arange(P), table.sizes
    else:
        who, weight = np.unique(choose_in_proportion(table.sizes, S), return_counts=True)
    n_deals = max(DEALS, min(REPLICATES, CELLS // (len(who) * K)))
    return who, weight, n_deals


def _choose_pairs_of_deals(
    weight: Ints, R: int, most: int, rng: Stream
) -> tuple[Ints, Ints, Floats]:
    """Return (i, j, weight) [R or 1, pairs]: all pairs, or others in each deal.

    Others, so that the spread of the deals has the error of the sampled pairs in it.
    """
    P = len(weight)
    if most >= P * (P - 1) // 2:
        i, j, w = choose_pairs(weight, most, rng)
        return i[None], j[None], w[None]
    i, j = draw_pairs(weight, R * most, rng)
    return i.reshape(R, most), j.reshape(R, most), np.full((R, most), 1 / most)


def _scale_all(key: MeasureKey, means: Floats, table: PartyCounts) -> Floats:
    return np.array([scale_mean(key, float(mean), table.g, table.w) for mean in means])
