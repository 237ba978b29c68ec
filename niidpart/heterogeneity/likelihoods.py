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
    """Return the terms of rows that each hold something."""
    K = counts.shape[1]
    n = counts.sum(axis=1, dtype=np.int64).astype(np.float64)
    nothing = np.zeros(0)
    if likelihood == "proportions":
        log_x = np.log((counts + 1) / (n + K)[:, None]).sum(axis=1)
        no_starts = np.zeros(0, np.int64)
        return RowTerms(K=K, n=n, values=nothing, times=nothing, starts=no_starts, log_x=log_x)
    in_order = np.sort(counts, axis=1)
    is_first = np.ones(in_order.shape, bool)
    is_first[:, 1:] = in_order[:, 1:] != in_order[:, :-1]
    places = np.flatnonzero(is_first)
    times = np.diff(places, append=in_order.size)
    values = in_order.reshape(-1)[places]
    # A class that the party lacks adds digamma(beta) - digamma(beta) = 0.
    is_held = values > 0
    n_values = np.bincount(places[is_held] // K, minlength=len(counts))
    return RowTerms(
        K=K,
        n=n,
        values=values[is_held].astype(np.float64),
        times=times[is_held].astype(np.float64),
        starts=np.concatenate([[0], np.cumsum(n_values)]),
        log_x=nothing,
    )


def collect_pooled_terms(counts: NDArray[Any], step: int) -> PooledTerms:
    """Return the terms of a whole table [P, K], of which `step` rows are looked at together."""
    K = counts.shape[1]
    of_counts: dict[int, int] = {}
    of_sizes: dict[int, int] = {}
    for start in range(0, len(counts), step):
        block = counts[start : start + step]
        _add_to_histogram(of_counts, block.reshape(-1))
        _add_to_histogram(of_sizes, block.sum(axis=1, dtype=np.int64))
    values, times = _to_arrays(of_counts)
    sizes, size_times = _to_arrays(of_sizes)
    # A class that a party lacks adds log 1 = 0 above the line.
    above = (times * np.log(values + 1)).sum()
    below = K * (size_times * np.log(sizes + K)).sum()
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
    first, second = _prior_slope(beta, kappa)
    first += K * digamma(K * beta)
    second += K * K * trigamma(K * beta)
    if likelihood == "proportions":
        first += terms.log_x[rows] - K * digamma(beta)
        second -= K * trigamma(beta)
    else:
        n = terms.n[rows]
        first -= K * digamma(K * beta + n)
        second -= K * K * trigamma(K * beta + n)
        of_classes = _slope_of_classes(beta, rows, terms)
        first += of_classes[0]
        second += of_classes[1]
    return _by_log_beta(beta, first, second)


def _slope_of_classes(beta: Floats, rows: NDArray[Any], terms: RowTerms) -> tuple[Floats, Floats]:
    """Return the sums over the classes of digamma(beta + q) - digamma(beta), and of trigamma."""
    # The values of these rows stand in pieces of terms.values: one flat list of their places.
    lengths = terms.starts[rows + 1] - terms.starts[rows]
    ends = np.cumsum(lengths)
    begins = ends - lengths
    places = np.arange(ends[-1]) + np.repeat(terms.starts[rows] - begins, lengths)
    times = terms.times[places]
    x = terms.values[places] + np.repeat(beta, lengths)
    first = times * (digamma(x) - np.repeat(digamma(beta), lengths))
    second = times * (trigamma(x) - np.repeat(trigamma(beta), lengths))
    return np.add.reduceat(first, begins), np.add.reduceat(second, begins)


def slope_of_all(
    beta: Floats, _rows: NDArray[Any], terms: PooledTerms, likelihood: BetaLikelihood, kappa: float
) -> tuple[Floats, Floats]:
    """Return f and df / dlog beta of the product of all rows' likelihoods, at one beta [1]."""
    first, second = _prior_slope(beta, kappa)
    K, P = terms.K, terms.n_rows
    at_K = K * beta
    psi, psi1 = digamma(beta), trigamma(beta)
    if likelihood == "proportions":
        first += terms.log_x + P * K * (digamma(at_K) - psi)
        second += P * K * (K * trigamma(at_K) - psi1)
        return _by_log_beta(beta, first, second)
    of_classes = (terms.times * (digamma(beta + terms.values) - psi)).sum()
    of_sizes = (terms.size_times * (digamma(at_K + terms.sizes) - digamma(at_K))).sum()
    first += of_classes - K * of_sizes
    of_classes = (terms.times * (trigamma(beta + terms.values) - psi1)).sum()
    of_sizes = (terms.size_times * (trigamma(at_K + terms.sizes) - trigamma(at_K))).sum()
    second += of_classes - K * K * of_sizes
    return _by_log_beta(beta, first, second)


def _prior_slope(beta: Floats, kappa: float) -> tuple[Floats, Floats]:
    """First and second derivative of kappa times the log density of Gamma(1/2, 1)."""
    return -kappa * (0.5 / beta + 1), kappa * 0.5 / beta**2


def _by_log_beta(beta: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Return f = beta L' and df / dlog beta, from L' and L''."""
    f = beta * first
    return f, f + beta * beta * second
