"""Quantiles of binomial and hypergeometric counts, for many of them at once."""

from typing import NamedTuple

import numpy as np

from ..arithmetic.exact import Floats, normal_quantile
from ..arithmetic.rng import Ints

# From this variance on a count is a rounded normal with its skewness; below, its distribution is
# added up exactly, which takes about as many steps as the mean.
_NORMAL = 30.0
_STIRLING = 1000  # from here on the series for log-factorials is exact to the last digits


class CountLaw(NamedTuple):
    """How many of n draws [M] from `total` [M] are among the `good` [M].

    replace: binomial with, hypergeometric without replacement.
    """

    n: Ints
    good: Ints
    total: Ints
    replace: bool

    def select(self, cells: Ints) -> "CountLaw":
        return CountLaw(self.n[cells], self.good[cells], self.total[cells], self.replace)

    def moments(self) -> tuple[Floats, Floats, Floats]:
        """Return mean, variance, and skewness times standard deviation."""
        p = self.good / self.total
        if self.replace:
            return self.n * p, self.n * p * (1 - p), 1 - 2 * p
        rest = self.total - self.n
        # without replacement the last draws are no longer free
        variance = self.n * p * (1 - p) * (rest / np.maximum(self.total - 1, 1))
        third = (1 - 2 * p) * ((self.total - 2 * self.n) / np.maximum(self.total - 2, 1))
        return self.n * p, variance, third


def count_quantile(u: Floats, law: CountLaw) -> Ints:
    """Return the u-quantile [M] of a count."""
    # Count what is fewer: the good or the others, the drawn or the left. Then the mean is small
    # where the variance is, and adding up from 0 takes few steps.
    is_flipped = 2 * law.good > law.total
    good = np.where(is_flipped, law.total - law.good, law.good)
    if law.replace:
        is_swapped = np.zeros(len(law.n), bool)
    else:
        is_swapped = 2 * law.n > law.total
    n = np.where(is_swapped, law.total - law.n, law.n)
    smaller = CountLaw(n, good, law.total, law.replace)
    q = _smaller_quantile(u, smaller)
    q = np.where(is_swapped, good - q, q)
    return np.where(is_flipped, law.n - q, q)


def _smaller_quantile(u: Floats, law: CountLaw) -> Ints:
    """The u-quantile of a count that is at most half of the good, and of the total."""
    mean, variance, third = law.moments()
    q = np.empty(len(law.n), np.int64)
    small = np.flatnonzero(variance < _NORMAL)
    q[small] = _add_up(u[small], law.select(small))
    large = np.flatnonzero(variance >= _NORMAL)
    q[large] = _round_normal(u[large], mean[large], variance[large], third[large])
    most = law.n if law.replace else np.minimum(law.n, law.good)
    return np.clip(q, 0, most)


def _round_normal(u: Floats, mean: Floats, variance: Floats, third: Floats) -> Ints:
    """Rounded normal quantile with the term of the skewness (Cornish and Fisher)."""
    z = normal_quantile(u)
    x: Floats = mean + np.sqrt(variance) * z + third * (z * z - 1) / 6
    return np.ceil(x - 0.5).astype(np.int64)


def _add_up(u: Floats, law: CountLaw) -> Ints:
    """The smallest q whose cumulative probability reaches u.

    The probability of q + 1 is that of q times a ratio, so that each step is one product; a row
    that has reached its u is not looked at again.
    """
    q = np.zeros(len(u), np.int64)
    mass = _probability_of_none(law)
    left = u - mass
    top = law.n if law.replace else np.minimum(law.n, law.good)
    rows = np.arange(len(u))
    while rows.size:
        goes_on = (left[rows] > 0) & (q[rows] < top[rows])
        rows = rows[goes_on]
        mass[rows] *= _ratio_to_next(q[rows], law.select(rows))
        left[rows] -= mass[rows]
        q[rows] += 1
    return q


def _probability_of_none(law: CountLaw) -> Floats:
    """(1 - good / total)^n with replacement; without, a ratio of falling factorials."""
    logs: Floats = np.log1p(-(law.good / law.total)) * law.n
    if not law.replace:
        others = law.total - law.good
        logs = logs + _log_falling(others, law.n) - _log_falling(law.total, law.n)
    return np.exp(logs)


def _ratio_to_next(q: Ints, law: CountLaw) -> Floats:
    """The probability of q + 1 over that of q."""
    others = law.total - law.good
    if law.replace:
        odds = law.good / others
        return (law.n - q) * odds / (q + 1)
    choices = (law.n - q) * (law.good - q).astype(np.float64)
    return choices / (others - law.n + q + 1) / (q + 1)


def _log_falling(x: Ints, n: Ints) -> Floats:
    """log(x (x - 1) ... (x - n + 1)) - n log x for n <= x.

    Without the cancellation of two large log-gammas: of large x by Stirling's series, in which the
    large terms cancel before they are computed. Each formula is evaluated everywhere, with harmless
    values where the other one is taken.
    """
    from scipy.special import gammaln

    is_far = x >= _STIRLING
    far, m = np.where(is_far, x, _STIRLING).astype(np.float64), np.where(is_far, n, 0)
    series = (1 / far - 1 / (far - m)) / 12
    stirling = -(far - m + 0.5) * np.log1p(-m / far) - m + series
    near, m = np.where(is_far, 1, x).astype(np.float64), np.where(is_far, 0, n)
    exact = gammaln(near + 1) - gammaln(near - m + 1) - m * np.log(near)
    value: Floats = np.where(is_far, stirling, exact)
    return value
