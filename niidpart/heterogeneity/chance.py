"""What chance alone makes of the measures: their spread when each party's examples are drawn anew, and their values in IID deals."""

from typing import NamedTuple

import numpy as np

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from .means import (
    Key,
    Table,
    bias_of_pairs,
    bias_of_parties,
    distances,
    drawn_pairs,
    in_proportion,
    of_parties,
    partners,
    scaled,
    some_pairs,
    within,
)
from .resample import deals, multinomial

REPLICATES = 200
FEW = 50  # replicates, where they are large; of still larger ones LEAST
LEAST = 5
RESAMPLED = 10_000  # cells (parties x classes) that a replicate draws; of more parties, some in proportion to size
CELLS = 500_000  # that all replicates together draw, and all deals; half of what the pairs looked at in all deals have
PARTNERS = 4  # of each resampled party, for pairwise measures; 1 where replicates are few
DEALT = 30_000  # cells that an IID deal draws
DEALS = 3  # at least
DEALT_PAIRS = 2_000  # looked at in each deal, at most


def deviations(table: Table, point: dict[Key, float], rng: Stream) -> dict[Key, Floats]:
    """[R] of each measure, scaled: how far it is from the mean of the replicates when each party's examples are drawn with replacement.

    A replicate's mean is the sum of what its parties add to it. Of many parties, S stand for all: taken in proportion to their shares w,
    each with the factor 1 / sqrt(w S), with which the variance of the sum is that of all. In a pairwise mean a party is resampled against
    PARTNERS others as they are, which is exact to first order.
    """
    P, K = table.counts.shape
    S, R = extent(P, K)
    who = np.arange(P) if S == P else in_proportion(table.sizes, S)
    factor = np.ones(P) if S == P else 1 / np.sqrt(table.w[who] * S)
    rows = np.tile(who, R)
    drawn = multinomial(table.sizes[rows], table.counts[rows].astype(np.int64), rng.child("counts"))
    p = (drawn / table.sizes[rows, None]).reshape(R, S, K)
    g = np.einsum("s,rsk->rk", table.w, p) if S == P else np.broadcast_to(table.g, (R, K))
    add = {key: _spread(f, table.w[who] * factor) for key, f in of_parties(p, g[:, None]).items()}
    if P > 1:
        w = table.w
        in_pairs = (
            w * (1 - w) / (1 - float((w * w).sum()))
        )  # the weight of the pairs that a party is in, halved
        for name, f in _against_partners(table, p, who, rng.child("partners")).items():
            add[name, "pairwise"] = 2 * _spread(f, in_pairs[who] * factor)
    found = {
        key: np.array([scaled(key, point[key] + d, h, table.w) for d, h in zip(a, g, strict=True)])
        for key, a in add.items()
    }
    return {key: np.asarray(v - v.mean()) for key, v in found.items()}


def extent(P: int, K: int) -> tuple[int, int]:
    """(parties that stand for all in a replicate, replicates): 200 replicates of all parties, less where they are more than CELLS together."""
    S = min(P, max(20, min(RESAMPLED // K, 500)))
    if FEW * S * K > CELLS:
        S = min(S, max(2, CELLS // (FEW * K)))
    return S, max(LEAST, min(REPLICATES, CELLS // (S * K)))


def _spread(f: Floats, coefficient: Floats) -> Floats:
    """[R] sum over parties of coefficient * (f [R, S] less its mean over the replicates)."""
    total: Floats = ((f - f.mean(axis=0)) * coefficient).sum(axis=1)
    return total


def _against_partners(table: Table, p: Floats, who: Ints, rng: Stream) -> dict[str, Floats]:
    """[R, S] mean distance of each resampled party to PARTNERS others."""
    total = dict.fromkeys(distances(), np.zeros(p.shape[:2]))
    n = PARTNERS if len(p) >= REPLICATES else 1
    for _ in range(n):
        other = partners(table.sizes, who, rng)
        q = table.counts[other] / table.sizes[other, None]
        for name, f in distances().items():
            total[name] = total[name] + f(p, q) / n
    return total


class Dealt(NamedTuple):
    """[R] of each measure in R deals, scaled: as measured, and less what small samples add by the measure's own account."""

    values: dict[Key, Floats]
    less_bias: dict[Key, Floats]


def of_deals(table: Table, rng: Stream) -> Dealt:
    """The measures in deals of all examples to parties of the same sizes, without regard to the class."""
    P, K = table.counts.shape
    S = min(P, max(2, min(max(50, DEALT // K), CELLS // (DEALS * K))))
    who, times = (
        (np.arange(P), table.sizes)
        if S == P
        else np.unique(in_proportion(table.sizes, S), return_counts=True)
    )
    R = max(DEALS, min(REPLICATES, CELLS // (len(who) * K)))
    sizes, weight = table.sizes[who], times / times.sum()
    p = (
        deals(sizes, table.counts.sum(axis=0, dtype=np.int64), R, rng.child("deals"))
        / sizes[:, None]
    )
    means = {key: (f * weight).sum(axis=1) for key, f in of_parties(p, table.g).items()}
    bias = {key: (f * weight).sum(axis=1) for key, f in bias_of_parties(p, sizes, table.g).items()}
    if len(who) > 1:
        i, j, w = _pairs_of_deals(
            times, R, within(DEALT_PAIRS, 2 * CELLS, R * K, least=2), rng.child("pairs")
        )
        deal = np.arange(R)[:, None]
        a, b = p[deal, i], p[deal, j]
        means |= {(name, "pairwise"): (w * f(a, b)).sum(axis=1) for name, f in distances().items()}
        bias |= {
            key: (w * f).sum(axis=1) for key, f in bias_of_pairs(a, b, sizes[i], sizes[j]).items()
        }
    values, less = (
        {key: _all_scaled(key, m, table) for key, m in d.items()}
        for d in (means, {k: m - bias[k] for k, m in means.items() if k in bias})
    )
    return Dealt(values, values | less)


def _pairs_of_deals(times: Ints, R: int, most: int, rng: Stream) -> tuple[Ints, Ints, Floats]:
    """(i, j, weight) [R or 1, pairs]: all, or other ones in each deal, so that the spread of the deals has their error in it."""
    P = len(times)
    if most >= P * (P - 1) // 2:
        i, j, w = some_pairs(times, most, rng)
        return i[None], j[None], w[None]
    i, j = drawn_pairs(times, R * most, rng)
    return i.reshape(R, most), j.reshape(R, most), np.full((R, most), 1 / most)


def _all_scaled(key: Key, means: Floats, table: Table) -> Floats:
    return np.array([scaled(key, float(m), table.g, table.w) for m in means])
