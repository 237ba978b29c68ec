"""Pairs of runs that share all that is drawn: their differences, and what can be said of them.

Two algorithms on one split with one seed have the same parties, initial weights, cohorts and
batches. What luck does to one it does to the other, so their difference varies less than either.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from niidpart.arithmetic.exact import Floats
from niidpart.errors import UsageError

from .intervals import CONFIDENCE, MeanInterval, compute_interval
from .sign_flip import compute_sign_flip

__all__ = ["PairStatistics", "measure_pairs"]

_DIGITS = 12  # of a value that count
_MOST_DIGITS = 300
_MOST_PERMUTED = 13  # pairs up to which scipy tries all signs of tied ranks


@dataclass(frozen=True)
class PairStatistics:
    """What n pairs say of the first algorithm less the second.

    Parameters
    ----------
    n : int
    mean, deviation : float
        Of the differences; the sample deviation, over n - 1, is None for one pair.
    interval : MeanInterval or None
        Of the mean.
    p, p_wilcoxon : float
        Of the sign-flip test, and of Wilcoxon's test of signed ranks; two-sided, of this pair of
        algorithms alone.
    wins : float
        The share of pairs in which the first is larger, ties counted half.
    wins_low, wins_high : float
        Wilson's interval of it.
    correlation : float or None
        Of the two over pairs: near 1 where luck hits both alike. None where one does not vary.
    """

    n: int
    mean: float
    deviation: float | None
    interval: MeanInterval | None
    p: float
    p_wilcoxon: float
    wins: float
    wins_low: float
    wins_high: float
    correlation: float | None


def measure_pairs(first: Sequence[float], second: Sequence[float]) -> PairStatistics:
    """Return what pairs say of their differences, first less second.

    Parameters
    ----------
    first, second : sequence of float
        Of one length; what stands at one place is a pair.

    Returns
    -------
    PairStatistics

    Raises
    ------
    UsageError
        Where there are no pairs, or a value is no finite number.

    Examples
    --------
    >>> found = measure_pairs([0.9, 0.8, 0.7], [0.8, 0.7, 0.5])
    >>> round(found.mean, 4), found.p, found.wins
    (0.1333, 0.25, 1.0)
    """
    a, b = _read_values(first, second)
    differences = _subtract(a, b)
    listed = differences.tolist()
    n = len(listed)
    wins = _count_wins(differences)
    low, high = _bound_share(wins, n)
    return PairStatistics(
        n=n,
        mean=float(differences.mean()),
        deviation=_compute_deviation(differences),
        interval=compute_interval(listed),
        p=compute_sign_flip(listed),
        p_wilcoxon=_compute_wilcoxon(differences),
        wins=wins / n,
        wins_low=low,
        wins_high=high,
        correlation=_correlate(a, b),
    )


def _read_values(first: Sequence[float], second: Sequence[float]) -> tuple[Floats, Floats]:
    a = np.asarray(first, dtype=np.float64)
    b = np.asarray(second, dtype=np.float64)
    is_alike = a.shape == b.shape
    if not is_alike or a.ndim != 1 or not len(a):
        raise UsageError(
            f"there are {a.size} and {b.size} values; a comparison in pairs needs two lists of "
            "one length, at least one value in each"
        )
    is_finite = np.isfinite(a) & np.isfinite(b)
    if not np.all(is_finite):
        raise UsageError(
            "a value is no finite number; leave its pair out, or say what it counts as"
        )
    return a, b


def _subtract(a: Floats, b: Floats) -> Floats:
    """Return the differences, without what is below the rounding of the values.

    0.3 - 0.2 equals 0.2 - 0.1; and losses of 1e-14 differ as those of 1 do.
    """
    differences = a - b
    sizes = np.abs([a, b])
    largest = float(sizes.max())
    if largest == 0:
        return differences
    digits = _DIGITS - math.ceil(math.log10(largest))
    # Of more digits numpy's power of ten is no number: values below 1e-288 are equal.
    digits = min(digits, _MOST_DIGITS)
    return np.round(differences, digits)


def _count_wins(differences: Floats) -> float:
    n_larger = np.count_nonzero(differences > 0)
    n_equal = np.count_nonzero(differences == 0)
    return float(n_larger + n_equal / 2)


def _compute_deviation(differences: Floats) -> float | None:
    if len(differences) < 2:
        return None
    if not np.ptp(differences):
        return 0.0  # a computed one would be what the mean was rounded by
    return float(differences.std(ddof=1))


def _bound_share(wins: float, n: int) -> tuple[float, float]:
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(wins, n, alpha=1 - CONFIDENCE, method="wilson")
    return float(low), float(high)


def _compute_wilcoxon(differences: Floats) -> float:
    """Return p of the test of signed ranks: exact up to 13 pairs, and beyond that without ties."""
    if not np.any(differences):
        return 1.0
    n = len(differences)
    sizes = np.abs(differences)
    has_zeros = not np.all(sizes)
    is_tied = has_zeros or len(np.unique(sizes)) < n
    if is_tied and n <= _MOST_PERMUTED:
        # scipy tries the signs in Python, a second for each comparison; it comes to the same p.
        ranks = stats.rankdata(sizes)
        signed = np.sign(differences) * ranks
        return compute_sign_flip(signed)
    # Pratt's zeros take part in the ranks: a pair that does not differ is evidence too.
    found = stats.wilcoxon(differences, zero_method="pratt")
    return float(found.pvalue)


def _correlate(a: Floats, b: Floats) -> float | None:
    if len(a) < 2:
        return None
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    matrix = np.corrcoef(a, b)
    return float(matrix[0, 1])
