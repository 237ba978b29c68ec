"""The measures of parties as they may truly be, given what was counted of them.

Where many parties are looked at, some stand for all as in the bootstrap.
"""

from typing import NamedTuple, Self

import numpy as np

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from .chance import CELLS, StandIns
from .means import MeasureKey, evaluate_distances, evaluate_parties, scale_means
from .tables import Pairs, PartyCounts, choose_pairs, limit_pairs

_PAIRS = 500  # looked at in each replicate, or as many as there are parties
_LEAST = 1e-100  # of a share, in examples
_NOTHING = 1e-300  # of weights; those of pairs may underflow where one party holds nearly all


class PossibleParties(NamedTuple):
    """What the stand-ins may truly be like, in each replicate.

    p: [R, S, K] their distributions. w: [S] or [R, S] their shares of the examples, where they are
    all parties.
    """

    p: Floats
    w: Floats

    @classmethod
    def of(cls, shares: Floats, counts: Ints) -> Self:
        """Take what each holds [R, S, K], in examples, where `counts` [S, K] were counted."""
        # A party that had nothing, before it was filled up or by rounding, weighs nothing; what it
        # holds has to be a distribution all the same.
        is_nothing = shares.max(axis=-1, keepdims=True) < _LEAST
        shares = np.where(is_nothing, _LEAST * counts, shares)
        sizes = shares.sum(axis=-1)  # [R, S]
        w = sizes / sizes.sum(axis=-1, keepdims=True)
        return cls(shares / sizes[..., None], w)


def evaluate_truths(
    table: PartyCounts,
    point: dict[MeasureKey, float],
    who: StandIns,
    possible: PossibleParties,
    rng: Stream,
) -> dict[MeasureKey, Floats]:
    """Return values [R] that each measure may truly have, scaled.

    Of many parties, some stand for all: the mean is that of all, the spread is brought from their
    number to that of all.

    point: the means that were measured.
    """
    R, S, K = possible.p.shape
    if who.are_all:
        weight, w_of_counts, w, w_of_all = table.sizes, table.w, possible.w, possible.w
        wide = np.broadcast_to(w, (R, S))
        g = np.einsum("rs,rsk->rk", wide, possible.p)
        narrower = 1.0
    else:
        # They were chosen in proportion to size, so each counts the same.
        weight = np.ones(S, np.int64)
        w = w_of_counts = np.full(S, 1 / S)
        w_of_all = table.w
        g = table.g
        # The mean over all parties varies less than that over S of them: its variance is the sum
        # of w^2, that of the mean over S is 1 / S.
        narrower = float(np.sqrt(S * (table.w**2).sum()))
    counts = table.counts[who.parties].astype(np.float64)
    q = counts / counts.sum(axis=1, keepdims=True)
    measured = _average(q, table.g, w_of_counts)
    drawn = _average(possible.p, np.expand_dims(g, -2), w)
    n_pairs = limit_pairs(_PAIRS, CELLS, R * K, least=S)
    pairs = _choose_pairs_apart(who.parties, weight, n_pairs, rng)
    errors: dict[MeasureKey, float] = {}
    if pairs.i.size:
        compared = _compare_pairs(pairs, _weigh_pairs(pairs, w, w_of_counts), q, possible.p)
        measured |= compared.measured
        drawn |= compared.drawn
        # Where the parties are as large as they were counted, the error of the pairs cancels out.
        if w.ndim > 1 and pairs.i.size < len(table.sizes) * (len(table.sizes) - 1) // 2:
            errors = compared.errors
    noise = rng.child("error of pairs").normal(R)
    truths = {}
    for key, means in drawn.items():
        centre = means.mean()
        # What was measured, moved by what the truth is expected to differ from it.
        expected = point[key] + (centre - measured[key])
        deviation = narrower * (means - centre)
        # That difference may be one of some pairs, not of all.
        of_pairs = errors.get(key, 0.0) * noise
        truths[key] = scale_means(key, expected + deviation + of_pairs, g, w_of_all)
    return truths


class _ComparedPairs(NamedTuple):
    """Means over pairs: of counts, and [R] of what was drawn; the errors of their difference."""

    measured: dict[MeasureKey, Floats]
    drawn: dict[MeasureKey, Floats]
    errors: dict[MeasureKey, float]


def _compare_pairs(pairs: Pairs, weight: Floats, q: Floats, p: Floats) -> _ComparedPairs:
    """Measure pairs of counted parties q [S, K], and of drawn ones p [R, S, K] of that weight."""
    compared = _ComparedPairs({}, {}, {})
    of_counts = _measure_pairs(q, pairs)
    for key, values in _measure_pairs(p, pairs).items():
        drawn = (values * weight).sum(axis=-1)
        measured = (of_counts[key] * pairs.weight).sum(axis=-1)
        residual = (weight * (values - drawn[:, None])).mean(axis=0)
        residual -= pairs.weight * (of_counts[key] - measured)
        compared.drawn[key] = drawn
        compared.measured[key] = measured
        compared.errors[key] = float(np.sqrt((residual**2).sum()))
    return compared


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


def _weigh_pairs(pairs: Pairs, w: Floats, w_of_counts: Floats) -> Floats:
    """Return [pairs] or [R, pairs] the weights of pairs of parties with shares w [S] or [R, S].

    w_of_counts: the shares by which they were chosen.
    """
    if w.ndim == 1:
        return pairs.weight
    i, j = pairs.i, pairs.j
    changed = w[:, i] * w[:, j] / (w_of_counts[i] * w_of_counts[j])
    weight = pairs.weight * changed
    total: Floats = weight.sum(axis=-1, keepdims=True)
    return weight / np.maximum(total, _NOTHING)


def _average(p: Floats, g: Floats, w: Floats) -> dict[MeasureKey, Floats]:
    """Return [...] of p [..., S, K]: the means over parties with weights w."""
    parties = evaluate_parties(p, g)
    return {key: (values * w).sum(axis=-1) for key, values in parties.items()}


def _measure_pairs(p: Floats, pairs: Pairs) -> dict[MeasureKey, Floats]:
    """Return [..., pairs] the distances of pairs of parties p [..., S, K]."""
    return evaluate_distances(p[..., pairs.i, :], p[..., pairs.j, :], "pairwise")
