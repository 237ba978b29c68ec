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
    scale_means,
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

# All limits are such that a table of any size takes a few seconds. A cell is a count of one party
# and one class.
REPLICATES = 200  # enough for the 2.5 % quantile to have 5 values beyond it
FEW = 50  # replicates, where they are large; of still larger ones LEAST
LEAST = 5
RESAMPLED = 10_000  # cells that a replicate draws, at most,
MOST_STAND_INS = 500  # of no more parties than these
LEAST_STAND_INS = 20  # and no less, where the classes are many
CELLS = 500_000  # that all replicates together draw, and all deals; pairs look at twice as many
PARTNERS = 4  # of each resampled party, for pairwise measures; 1 where replicates are few
DEALT = 30_000  # cells that an IID deal draws,
LEAST_DEALT_TO = 50  # of no less parties than these
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
    wanted = min(RESAMPLED // K, MOST_STAND_INS)
    S = min(P, max(LEAST_STAND_INS, wanted))
    # Replicates give way first, parties only where not even FEW replicates would fit: the mean of
    # too few parties says little, however often it is drawn.
    if FEW * S * K > CELLS:
        affordable = CELLS // (FEW * K)
        S = min(S, max(2, affordable))
    R = min(REPLICATES, CELLS // (S * K))
    return S, max(LEAST, R)


class Replicates(NamedTuple):
    """What resampling does to the measures, scaled.

    deviations: [R] of each, from its mean in the replicates. rises: by how much that mean is above
    the value that was measured, of measures over parties.
    """

    deviations: dict[MeasureKey, Floats]
    rises: dict[MeasureKey, float]


def bootstrap(table: PartyCounts, point: dict[MeasureKey, float], rng: Stream) -> Replicates:
    """Measure replicates of the parties.

    In a replicate each party's examples are drawn again, with replacement. Its mean is the sum of
    what its parties add to it. Of many parties, S stand for all: taken in proportion to their
    shares w, each with the factor 1 / sqrt(w S), with which the variance of the sum is that of all.
    In a pairwise mean a party is resampled against PARTNERS others as they are, which is exact to
    first order.

    point: the means that were measured, about which the replicates lie.
    """
    P = len(table.counts)
    who, R, are_all = StandIns.of(table)
    S = len(who)
    w = table.w[who]
    p = _resample(table, who, R, rng.child("counts"))  # [R, S, K]
    if are_all:
        factor = np.ones(P)
        g = np.einsum("s,rsk->rk", w, p)
    else:
        # The whole of a replicate is not known from some parties: that of the table stands for it.
        factor = 1 / np.sqrt(w * S)
        g = table.g
    moves, rises = {}, {}
    measured = evaluate_parties(table.proportions(who), table.g)
    each = w if are_all else np.full(S, 1 / S)  # stand-ins were taken in proportion to size
    for key, values in evaluate_parties(p, np.expand_dims(g, -2)).items():
        moves[key] = _sum_deviations(values, w * factor)
        risen = point[key] + float(((values.mean(axis=0) - measured[key]) * each).sum())
        of_point = scale_mean(key, point[key], table.g, table.w)
        rises[key] = scale_mean(key, risen, table.g, table.w) - of_point
    if P > 1:
        in_pairs = _weigh_in_pairs(table.w)[who]
        distances = _compare_with_partners(table, p, who, rng.child("partners"))
        for key, values in distances.items():
            moves[key] = _sum_deviations(values, in_pairs * factor)
    deviations = {}
    for key, moved in moves.items():
        means = point[key] + moved
        scaled = scale_means(key, means, g, table.w)
        deviations[key] = np.asarray(scaled - scaled.mean())
    return Replicates(deviations, rises)


def _resample(table: PartyCounts, who: Ints, R: int, rng: Stream) -> Floats:
    """Return [R, S, K]: proportions of R replicates of the parties `who` [S]."""
    S, K = len(who), table.counts.shape[1]
    rows = np.tile(who, R)
    sizes = table.sizes[rows]
    counts = table.counts[rows].astype(np.int64)
    drawn = draw_multinomial(sizes, counts, rng)
    p: Floats = drawn / sizes[:, None]
    return p.reshape(R, S, K)


def _weigh_in_pairs(w: Floats) -> Floats:
    """Return the weight of the pairs that each party is in, where all pairs together weigh 1."""
    of_same = float((w * w).sum())  # the weight of (i, i), which is no pair
    weight: Floats = 2 * w * (1 - w) / (1 - of_same)
    return weight


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

    values: as measured. less_bias: less what small samples add by the measure's own account; {}
    where it was not asked for.
    """

    values: dict[MeasureKey, Floats]
    less_bias: dict[MeasureKey, Floats]


def measure_deals(table: PartyCounts, rng: Stream, *, with_bias: bool = True) -> DealtValues:
    """Return the measures in deals of all examples, regardless of class, to parties as large.

    They are what an IID split with as few examples would show.

    with_bias: whether their bias is wanted too, which takes longer than the deals.
    """
    who, weight, R = _choose_dealt(table)
    sizes = table.sizes[who]
    totals = table.counts.sum(axis=0, dtype=np.int64)
    dealt = draw_deals(sizes, totals, R, rng.child("deals"))
    p = dealt / sizes[:, None]  # [R, S, K]
    share = weight / weight.sum()
    means = {}
    for key, values in evaluate_parties(p, table.g).items():
        means[key] = (values * share).sum(axis=1)
    bias = {}
    if with_bias:
        for key, values in estimate_bias(p, table.g, sizes, None, "to-global").items():
            bias[key] = (values * share).sum(axis=1)
    if len(who) > 1:
        of_pairs = _average_pairs(p, sizes, weight, rng.child("pairs"), with_bias)
        means |= of_pairs.means
        bias |= of_pairs.bias
    scaled = {}
    for key, mean in means.items():
        scaled[key] = scale_means(key, mean, table.g, table.w)  # each deals the same examples
    less_bias = dict(scaled) if with_bias else {}
    for key, added in bias.items():
        less_bias[key] = scale_means(key, means[key] - added, table.g, table.w)
    return DealtValues(values=scaled, less_bias=less_bias)


class _DealtPairs(NamedTuple):
    """Means [R] of the distances over pairs, and their bias."""

    means: dict[MeasureKey, Floats]
    bias: dict[MeasureKey, Floats]


def _average_pairs(
    p: Floats,
    sizes: Ints,
    weight: Ints,
    rng: Stream,
    with_bias: bool,
) -> _DealtPairs:
    """Return the means over pairs of parties p [R, S, K]."""
    R, _, K = p.shape
    n_pairs = limit_pairs(DEALT_PAIRS, 2 * CELLS, R * K, least=2)
    i, j, w = _choose_pairs_of_deals(weight, R, n_pairs, rng)
    deal = np.arange(R)[:, None]
    a, b = p[deal, i], p[deal, j]  # [R, pairs, K]
    means = {}
    for key, values in evaluate_distances(a, b, "pairwise").items():
        means[key] = (w * values).sum(axis=1)
    bias = {}
    if with_bias:
        for key, values in estimate_bias(a, b, sizes[i], sizes[j], "pairwise").items():
            bias[key] = (w * values).sum(axis=1)
    return _DealtPairs(means, bias)


def _choose_dealt(table: PartyCounts) -> tuple[Ints, Ints, int]:
    """Return (parties that are dealt to, the weight of each, number of deals).

    Of many parties some stand for all, in proportion to size: a large one may stand for several.
    """
    P, K = table.counts.shape
    wanted = max(LEAST_DEALT_TO, DEALT // K)
    affordable = CELLS // (DEALS * K)
    S = min(P, max(2, min(wanted, affordable)))
    if S == P:
        who, weight = np.arange(P), table.sizes
    else:
        some = choose_in_proportion(table.sizes, S)
        who, weight = np.unique(some, return_counts=True)
    n_deals = min(REPLICATES, CELLS // (len(who) * K))
    return who, weight, max(DEALS, n_deals)


def _choose_pairs_of_deals(
    weight: Ints, R: int, most: int, rng: Stream
) -> tuple[Ints, Ints, Floats]:
    """Return (i, j, weight) [R or 1, pairs]: all pairs, or others in each deal.

    Others, so that the spread of the deals has the error of the sampled pairs in it.
    """
    S = len(weight)
    if most >= S * (S - 1) // 2:
        i, j, w = choose_pairs(weight, most, rng)
        return i[None], j[None], w[None]
    i, j = draw_pairs(weight, R * most, rng)
    # They were drawn in proportion to their weight, so each counts the same.
    same = np.full((R, most), 1 / most)
    return i.reshape(R, most), j.reshape(R, most), same
