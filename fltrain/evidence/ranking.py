"""Algorithms ranked over several splits: Friedman's test and Nemenyi's critical difference.

A block is a split; the value of an algorithm there is the mean of its trials. Trials of one split
are no blocks of their own, since they share the split. Demsar, JMLR 2006, section 3.2.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import stats

from niidpart.arithmetic.exact import Floats
from niidpart.errors import UsageError

__all__ = ["Ranking", "rank_over_blocks"]

_RESAMPLES = 9_999
_SEED = 0


@dataclass(frozen=True)
class Ranking:
    """The mean ranks of algorithms over blocks; 1 is the best.

    Parameters
    ----------
    mean_ranks : mapping of str to float
        Best first.
    n_blocks : int
    statistic : float
        Friedman's chi-squared, corrected for ties.
    p : float
        That ranks differ by chance alone so much: of permutations within blocks, all of them where
        they are at most 9,999.
    critical_difference : float
        Of mean ranks, by Nemenyi, over all pairs.
    alike : sequence of sequence of str
        The largest groups in which no two differ by as much: the bars of a diagram.
    why_no_claim : str
        Why so few blocks allow no claim; "" where they do.
    """

    mean_ranks: Mapping[str, float]
    n_blocks: int
    statistic: float
    p: float
    critical_difference: float
    alike: Sequence[Sequence[str]]
    why_no_claim: str


def rank_over_blocks(
    values: Mapping[str, Sequence[float]], *, level: float = 0.05, is_loss: bool = False
) -> Ranking:
    """Rank algorithms by their values on several splits.

    Parameters
    ----------
    values : mapping of str to sequence of float
        Of each algorithm one a split, in one order.
    level : float
    is_loss : bool
        Whether less is better.

    Returns
    -------
    Ranking

    Raises
    ------
    UsageError
        For fewer than three algorithms or two splits, or lists of different lengths.

    Examples
    --------
    >>> found = rank_over_blocks({"a": [0.9, 0.8, 0.7], "b": [0.8, 0.7, 0.6], "c": [0.1, 0.2, 0.3]})
    >>> dict(found.mean_ranks), round(found.p, 4)
    ({'a': 1.0, 'b': 2.0, 'c': 3.0}, 0.0278)
    """
    table = _read_blocks(values)
    n_blocks, k = table.shape
    losses = table if is_loss else -table
    # Rounded, so that values which differ by rounding alone are a tie.
    rounded = np.round(losses, 12)
    ranks = stats.rankdata(rounded, axis=1)
    critical = _find_critical_difference(k, n_blocks, level)
    means = ranks.mean(axis=0)
    by_name = dict(zip(values, means.tolist(), strict=True))
    names = sorted(by_name, key=lambda name: by_name[name])
    ordered = {name: by_name[name] for name in names}
    return Ranking(
        mean_ranks=ordered,
        n_blocks=n_blocks,
        statistic=_compute_friedman(ranks),
        p=_permute_ranks(ranks),
        critical_difference=critical,
        alike=_group_alike(ordered, critical),
        why_no_claim=_explain_refusal(k, n_blocks, level),
    )


def _read_blocks(values: Mapping[str, Sequence[float]]) -> Floats:
    """Return [blocks, algorithms]."""
    of_each = list(values.values())
    lengths = sorted({len(of_one) for of_one in of_each})
    if len(values) < 3 or len(lengths) > 1 or lengths[0] < 2:
        told = " or ".join(map(str, lengths))
        raise UsageError(
            f"there are {len(values)} algorithms on {told} splits; a ranking needs three "
            "algorithms or more, each on the same two or more splits"
        )
    return np.asarray(of_each, dtype=np.float64).T


def _compute_friedman(ranks: Floats) -> float:
    if np.all(ranks == ranks[0, 0]):
        return 0.0
    found = stats.friedmanchisquare(*ranks.T)
    return float(found.statistic)


def _permute_ranks(ranks: Floats) -> float:
    """Return p of Friedman's test: the statistic grows with the sum of squares of rank sums."""
    found = stats.permutation_test(
        tuple(ranks.T),
        _add_squares,
        permutation_type="samples",
        vectorized=True,
        n_resamples=_RESAMPLES,
        alternative="greater",
        rng=np.random.default_rng(_SEED),
    )
    return float(found.pvalue)


def _add_squares(*ranks: Floats, axis: int) -> Floats:
    squares = [np.sum(one, axis=axis) ** 2 for one in ranks]
    total: Floats = np.sum(squares, axis=0)
    return total


def _find_critical_difference(k: int, n_blocks: int, level: float) -> float:
    return _find_reach(k, level) / math.sqrt(n_blocks)


@cache
def _find_reach(k: int, level: float) -> float:
    """Return the critical difference on a single block."""
    quantile = stats.studentized_range.ppf(1 - level, k, np.inf)
    variance = k * (k + 1) / 6
    return float(quantile / math.sqrt(2) * math.sqrt(variance))


def _group_alike(ranks: Mapping[str, float], critical: float) -> list[list[str]]:
    """Return the largest runs of neighbours whose ends differ by less than the critical one."""
    names = list(ranks)
    groups: list[list[str]] = []
    for start, name in enumerate(names):
        group = []
        for other in names[start:]:
            if ranks[other] - ranks[name] < critical:
                group.append(other)
        last = groups[-1] if groups else [""]
        is_within = group[-1] == last[-1]
        if len(group) > 1 and not is_within:
            groups.append(group)
    return groups


def _explain_refusal(k: int, n_blocks: int, level: float) -> str:
    """Return why no two algorithms could have been told apart, however they had ranked."""
    if _find_critical_difference(k, n_blocks, level) <= k - 1:
        return ""
    reach = _find_reach(k, level)
    needed = math.ceil((reach / (k - 1)) ** 2)
    return (
        f"on {n_blocks} splits no two of {k} algorithms can be told apart by their ranks, "
        f"first everywhere or not: it takes {needed} splits"
    )
