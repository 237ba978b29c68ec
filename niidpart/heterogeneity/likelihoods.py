"""The log posterior of beta given counts of classes: its terms, and its slope.

With L(beta) the log posterior, all functions here give f = beta * L' and its derivative by
log beta, beta L' + beta^2 L''. docs/heterogeneity.md has the equations.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.exact import Floats
from .polygamma import digamma, trigamma

BetaLikelihood = Literal["multinomial", "proportions"]


class RowTerms(NamedTuple):
    """What the log likelihood of each of R rows is made of.

    Equal counts of a row are one value with its multiplicity, since 100 classes rarely have 20
    different counts. Row r has values[starts[r]:starts[r + 1]], all above 0, each so many `times`.
    Only what the likelihood needs is filled in.

    K: classes. n: [R] examples. log_x: [R] sum of the logs of the smoothed proportions.
    """

    K: int
    n: Floats
    values: Floats
    times: Floats
    starts: NDArray[np.int64]
    log_x: Floats


class PooledTerms(NamedTuple):
    """What the log likelihood of all rows together is made of.

    values, times: counts above 0 that occur in the table, and how often. sizes, size_times: the
    same of the parties' sizes. n_rows: rows that hold something. log_x: as in `RowTerms`, summed.
    """

    K: int
    values: Floats
    times: Floats
    sizes: Floats
    size_times: Floats
    n_rows: float
    log_x: float


def collect_row_terms(counts: NDArray[Any], likelihood: BetaLikelihood) -> RowTerms:
    """Return the terms of rows [R, K] that each hold something."""
    n = counts.sum(axis=1, dtype=np.int64).astype(np.float64)
    if likelihood == "proportions":
        return _collect_proportions(counts, n)
    return _collect_counts(counts, n)


def _collect_proportions(counts: NDArray[Any], n: Floats) -> RowTerms:
    """Return the sum over the classes of log x, x = (q + 1) / (n + K)."""
    K = counts.shape[1]
    x = (counts + 1) / (n + K)[:, None]  # [R, K]
    log_x = np.log(x).sum(axis=1)
    nothing = np.zeros(0)
    no_starts = np.zeros(0, np.int64)
    return RowTerms(K=K, n=n, values=nothing, times=nothing, starts=no_starts, log_x=log_x)


def _collect_counts(counts: NDArray[Any], n: Floats) -> RowTerms:
    """Return the distinct counts above 0 of each row, with how often each occurs there."""
    K = counts.shape[1]
    in_order = np.sort(counts, axis=1)
    # Equal counts now stand next to each other; a run of them ends where the next one begins, and
    # each row begins a run.
    is_first = np.ones(in_order.shape, bool)
    is_first[:, 1:] = in_order[:, 1:] != in_order[:, :-1]
    places = np.flatnonzero(is_first)
    times = np.diff(places, append=in_order.size)
    values = in_order.reshape(-1)[places]
    # A class that the party lacks adds digamma(beta) - digamma(beta) = 0.
    is_held = values > 0
    row_of_value = places[is_held] // K
    n_values = np.bincount(row_of_value, minlength=len(counts))
    ends = np.cumsum(n_values)
    return RowTerms(
        K=K,
        n=n,
        values=values[is_held].astype(np.float64),
        times=times[is_held].astype(np.float64),
        starts=np.concatenate([[0], ends]),
        log_x=np.zeros(0),
    )


def collect_pooled_terms(counts: NDArray[Any], step: int) -> PooledTerms:
    """Return the terms of a whole table [P, K], of which `step` rows are looked at together."""
    K = counts.shape[1]
    of_counts: dict[int, int] = {}
    of_sizes: dict[int, int] = {}
    for start in range(0, len(counts), step):
        block = counts[start : start + step]
        block_sizes = block.sum(axis=1, dtype=np.int64)
        _add_to_histogram(of_counts, block.reshape(-1))
        _add_to_histogram(of_sizes, block_sizes)
    values, times = _to_arrays(of_counts)
    sizes, size_times = _to_arrays(of_sizes)
    # The sum of log x = log(q + 1) - log(n + K) over all cells. A class that a party lacks adds
    # log 1 = 0 above the line, so that the counts above 0 are enough there.
    log_above = np.log(values + 1)
    log_below = np.log(sizes + K)
    above = (times * log_above).sum()
    below = K * (size_times * log_below).sum()
    return PooledTerms(
        K=K,
        values=values,
        times=times,
        sizes=sizes,
        size_times=size_times,
        n_rows=float(size_times.sum()),
        log_x=float(above - below),
    )


def _add_to_histogram(histogram: dict[int, int], values: NDArray[Any]) -> None:
    distinct, times = np.unique(values[values > 0], return_counts=True)
    for value, n in zip(distinct.tolist(), times.tolist(), strict=True):
        histogram[value] = histogram.get(value, 0) + n


def _to_arrays(histogram: dict[int, int]) -> tuple[Floats, Floats]:
    """Return (values, how often each), ascending: sums over them have one order."""
    values = sorted(histogram)
    times = [histogram[value] for value in values]
    return np.array(values, np.float64), np.array(times, np.float64)


def slope_of_rows(
    beta: Floats, rows: NDArray[Any], terms: RowTerms, likelihood: BetaLikelihood, kappa: float
) -> tuple[Floats, Floats]:
    """Return f and df / dlog beta of each row [r], at its own beta [r]."""
    K = terms.K
    alpha = K * beta  # of the whole Dirichlet: the sum of its K parameters
    first, second = _prior_slope(beta, kappa)
    # Both likelihoods have the factor Gamma(K beta).
    first += K * digamma(alpha)
    second += K * K * trigamma(alpha)
    if likelihood == "proportions":
        # ... times x^(beta - 1) / Gamma(beta) of each class
        first += terms.log_x[rows] - K * digamma(beta)
        second -= K * trigamma(beta)
    else:
        # ... over Gamma(K beta + n), times Gamma(beta + q) / Gamma(beta) of each class
        after = alpha + terms.n[rows]
        first -= K * digamma(after)
        second -= K * K * trigamma(after)
        first_of_classes, second_of_classes = _slope_of_classes(beta, rows, terms)
        first += first_of_classes
        second += second_of_classes
    return _by_log_beta(beta, first, second)


def _slope_of_classes(beta: Floats, rows: NDArray[Any], terms: RowTerms) -> tuple[Floats, Floats]:
    """Return the sums over the classes of digamma(beta + q) - digamma(beta), and of trigamma."""
    # The values of these rows stand in pieces of terms.values. `places` [v] puts these pieces one
    # after the other, row i from begins[i] on.
    starts = terms.starts[rows]
    lengths = terms.starts[rows + 1] - starts
    ends = np.cumsum(lengths)
    begins = ends - lengths
    shifts = np.repeat(starts - begins, lengths)
    places = np.arange(ends[-1]) + shifts
    times = terms.times[places]
    x = terms.values[places] + np.repeat(beta, lengths)  # q + beta
    # The functions of beta alone are computed once a row, then repeated.
    psi = np.repeat(digamma(beta), lengths)
    psi1 = np.repeat(trigamma(beta), lengths)
    first = times * (digamma(x) - psi)
    second = times * (trigamma(x) - psi1)
    return np.add.reduceat(first, begins), np.add.reduceat(second, begins)


def slope_of_all(
    beta: Floats, _rows: NDArray[Any], terms: PooledTerms, likelihood: BetaLikelihood, kappa: float
) -> tuple[Floats, Floats]:
    """Return f and df / dlog beta of the product of all rows' likelihoods, at one beta [1]."""
    K = terms.K
    alpha = K * beta
    first, second = _prior_slope(beta, kappa)
    if likelihood == "proportions":
        PK = terms.n_rows * K  # one factor 1 / Gamma(beta) for each cell of the table
        first += terms.log_x + PK * (digamma(alpha) - digamma(beta))
        second += PK * (K * trigamma(alpha) - trigamma(beta))
        return _by_log_beta(beta, first, second)
    # A party of no examples adds 0, and so does a class without any: they are not among the terms.
    x = beta + terms.values
    after = alpha + terms.sizes
    of_classes = (terms.times * (digamma(x) - digamma(beta))).sum()
    of_sizes = (terms.size_times * (digamma(after) - digamma(alpha))).sum()
    first += of_classes - K * of_sizes
    of_classes = (terms.times * (trigamma(x) - trigamma(beta))).sum()
    of_sizes = (terms.size_times * (trigamma(after) - trigamma(alpha))).sum()
    second += of_classes - K * K * of_sizes
    return _by_log_beta(beta, first, second)


def _prior_slope(beta: Floats, kappa: float) -> tuple[Floats, Floats]:
    """First and second derivative of kappa times the log density of Gamma(1/2, 1)."""
    # The log density is -log(beta) / 2 - beta and a constant.
    first = -kappa * (0.5 / beta + 1)
    second = kappa * 0.5 / beta**2
    return first, second


def _by_log_beta(beta: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Return f = beta L' and df / dlog beta, from L' and L''."""
    f = beta * first
    return f, f + beta * beta * second
