"""The Dirichlet concentration that explains a party's class counts best: the maximum a posteriori estimate of beta.

Cha and Chang, Information 16 (2025) 861, section 3.2, with the signs as they must be; docs/heterogeneity.md has equations and reference values.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.exact import Floats
from ..errors import UsageError

__all__ = ["map_beta"]

VERSION = 1
LOWEST, HIGHEST = 1e-6, 1e6  # the bracket that beta is looked for in
_CELLS = 1 << 20  # of the table, looked at together: bounds the memory
_STEP = 1e-8  # in log beta; Newton doubles the digits, so the step after this one would be about its square
Likelihood = Literal["multinomial", "proportions"]
Slope = Callable[[Floats, NDArray[Any]], tuple[Floats, Floats]]


class Terms(NamedTuple):
    """What the log likelihood of rows is made of. Row r has the values q[starts[r]:starts[r + 1]], each `times` times, all above 0."""

    n: Floats  # [R] examples
    n_times: Floats  # [R, or more where rows are one]
    q: Floats
    times: Floats
    starts: NDArray[np.int64]
    log_x: Floats  # [R] sum of the logs of the smoothed proportions


def map_beta(
    counts: NDArray[Any], *, likelihood: Likelihood = "multinomial", kappa: float = 1
) -> Floats:
    """[P] beta that has the highest posterior density for each row of `counts` [P, K], within 1e-6 to 1e6.

    likelihood: "multinomial", the Dirichlet-multinomial of the counts; "proportions", the Dirichlet density of (q + 1) / (n + K).
    kappa: the power of the prior Gamma(1/2, 1); the paper's text has K. A row without examples gets 1e-6: its posterior is the prior,
    whose mode is 0. So does, with "multinomial", a row that holds one class. ValueError for anything but a table of counts.
    """
    counts = checked(counts)
    _check(likelihood, kappa)
    out = np.full(len(counts), LOWEST)
    step = max(1, _CELLS // counts.shape[1])
    for start in range(0, len(counts), step):
        block = counts[start : start + step]
        held = np.flatnonzero(block.sum(axis=1))
        if held.size:
            slope = partial(
                _slope,
                t=_terms(block[held], likelihood),
                K=block.shape[1],
                likelihood=likelihood,
                kappa=kappa,
            )
            out[start + held] = solve(slope, _first(block[held]))
    return out


def map_beta_overall(
    counts: NDArray[Any], *, likelihood: Likelihood = "multinomial", kappa: float = 1
) -> float:
    """The beta that has the highest posterior density for all rows of `counts` [P, K] together: their likelihoods multiplied, one prior.

    Rows without examples say nothing. 1e-6 where none has any. ValueError for anything but a table of counts.
    """
    counts = checked(counts)
    _check(likelihood, kappa)
    values, times, sizes, size_times = _histograms(counts)
    if not sizes.size:
        return LOWEST
    terms = _pooled(values, times, sizes, size_times, counts.shape[1])
    slope = partial(_slope_of_all, t=terms, K=counts.shape[1], likelihood=likelihood, kappa=kappa)
    return float(solve(slope, np.array([1.0]))[0])


def checked(counts: NDArray[Any]) -> NDArray[Any]:
    """The table of counts [P, K]; ValueError for anything else."""
    counts = np.asarray(counts)
    if counts.ndim != 2 or counts.dtype.kind not in "iu" or not counts.shape[1]:
        raise UsageError(
            f"counts are {counts.dtype}{list(counts.shape)}; a table [parties, classes] of integers is needed"
        )
    if counts.size and counts.min() < 0:
        raise UsageError(f"counts go down to {counts.min()}; they must be 0 or more")
    return counts


def _check(likelihood: str, kappa: float) -> None:
    if likelihood not in ("multinomial", "proportions"):
        raise UsageError(f"likelihood is {likelihood!r}; it must be multinomial or proportions")
    if not 0 < kappa < np.inf:
        raise UsageError(
            f"kappa is {kappa}; the power of the prior must be above 0, 1 for the prior itself"
        )


def solve(slope: Slope, start: Floats) -> Floats:
    """[R] the root of each row's f = beta * dL/dbeta: Newton in log beta inside a bracket that keeps f's change of sign, else halving.

    slope(beta [r], rows [r]) -> (f, df / dlog beta). f falls through 0 at most once; a row whose f is below 0 at 1e-6 is 1e-6.
    Only rows that are not done are looked at again.
    """
    u = np.log(np.clip(start, LOWEST, HIGHEST))
    low, high = np.full(len(u), np.log(LOWEST)), np.full(len(u), np.log(HIGHEST))
    rows = np.arange(len(u))
    for edge, outwards in ((low, -1), (high, 1)):  # no root in the bracket: its end
        if not rows.size:
            break
        f, _ = slope(np.exp(edge[rows]), rows)
        outside = f * outwards > 0
        u[rows[outside]] = edge[rows[outside]]
        rows = rows[~outside]
    while rows.size:
        f, df = slope(np.exp(u[rows]), rows)
        here = u[rows]
        low[rows] = np.where(f >= 0, here, low[rows])
        high[rows] = np.where(f <= 0, here, high[rows])
        newton = here - f / np.where(df < 0, df, -1.0)
        inside = (newton > low[rows]) & (newton < high[rows])
        good = (df < 0) & (
            inside | (np.abs(newton - here) <= _STEP)
        )  # at the root the sign of f is rounding; halving would lead away from it
        u[rows] = np.where(f == 0, here, np.where(good, newton, (low[rows] + high[rows]) / 2))
        rows = rows[np.abs(u[rows] - here) > _STEP]
    beta = np.exp(u)
    beta[u <= np.log(LOWEST)], beta[u >= np.log(HIGHEST)] = (
        LOWEST,
        HIGHEST,
    )  # exp(log(1e-6)) is not 1e-6
    return beta


def _first(counts: NDArray[Any]) -> Floats:
    """[R] where to begin: the beta whose expected share of equal pairs, (beta + 1) / (K beta + 1), is that of the row; at most K."""
    q, K = counts.astype(np.float64), counts.shape[1]
    n = q.sum(axis=1)
    equal = (q * (q - 1)).sum(axis=1) / np.maximum(n * (n - 1), 1)
    start: Floats = np.clip((1 - equal) / np.maximum(K * equal - 1, 1 / K), 1e-3, K)
    return start


def _terms(counts: NDArray[Any], likelihood: Likelihood) -> Terms:
    """Of rows that each hold something. Equal counts of a row are one value with its multiplicity: 100 classes rarely have 20 different counts."""
    n, K = counts.sum(axis=1, dtype=np.int64).astype(np.float64), counts.shape[1]
    if likelihood == "proportions":
        nothing = np.zeros(0)
        return Terms(
            n,
            nothing,
            nothing,
            nothing,
            np.zeros(0, np.int64),
            np.log((counts + 1) / (n + K)[:, None]).sum(axis=1),
        )
    q = np.sort(counts, axis=1)
    first = np.ones(q.shape, bool)
    first[:, 1:] = q[:, 1:] != q[:, :-1]
    at = np.flatnonzero(first)
    times = np.diff(at, append=q.size)
    values = q.reshape(-1)[at]
    kept = values > 0  # a class that the party lacks adds digamma(beta) - digamma(beta) = 0
    starts = np.concatenate([[0], np.cumsum(np.bincount(at[kept] // K, minlength=len(q)))])
    return Terms(
        n,
        np.zeros(0),
        values[kept].astype(np.float64),
        times[kept].astype(np.float64),
        starts,
        np.zeros(0),
    )


def _slope(
    beta: Floats, rows: NDArray[Any], t: Terms, K: int, likelihood: str, kappa: float
) -> tuple[Floats, Floats]:
    """f = beta L' and df / dlog beta = beta L' + beta^2 L'' of each row, at its own beta."""
    first, second = _prior(beta, kappa)
    psi, psi1, at_K = digamma(beta), trigamma(beta), K * beta
    first += K * digamma(at_K)
    second += K * K * trigamma(at_K)
    if likelihood == "proportions":
        first += t.log_x[rows] - K * psi
        second -= K * psi1
    else:
        first -= K * digamma(at_K + t.n[rows])
        second -= K * K * trigamma(at_K + t.n[rows])
        length = t.starts[rows + 1] - t.starts[rows]
        ends = np.cumsum(length)
        pairs = np.arange(ends[-1]) + np.repeat(t.starts[rows] - ends + length, length)
        x = t.q[pairs] + np.repeat(beta, length)
        times = t.times[pairs]
        first += np.add.reduceat(times * (digamma(x) - np.repeat(psi, length)), ends - length)
        second += np.add.reduceat(times * (trigamma(x) - np.repeat(psi1, length)), ends - length)
    f = beta * first
    return f, f + beta * beta * second


def _histograms(counts: NDArray[Any]) -> tuple[Floats, Floats, Floats, Floats]:
    """(counts that occur, how often; party sizes that occur, how often), without 0."""
    seen: dict[str, dict[int, int]] = {"q": {}, "n": {}}
    step = max(1, _CELLS // counts.shape[1])
    for start in range(0, len(counts), step):
        block = counts[start : start + step]
        for name, values in (("q", block.reshape(-1)), ("n", block.sum(axis=1, dtype=np.int64))):
            for v, t in zip(
                *(a.tolist() for a in np.unique(values[values > 0], return_counts=True)),
                strict=True,
            ):
                seen[name][v] = seen[name].get(v, 0) + t
    q, n = ({k: table[k] for k in sorted(table)} for table in seen.values())
    as_floats = [
        np.array(list(part), np.float64) for part in (q.keys(), q.values(), n.keys(), n.values())
    ]
    return as_floats[0], as_floats[1], as_floats[2], as_floats[3]


def _pooled(values: Floats, times: Floats, sizes: Floats, size_times: Floats, K: int) -> Terms:
    held = size_times.sum()
    log_x = (times * np.log(values + 1)).sum() - K * (
        size_times * np.log(sizes + K)
    ).sum()  # a missing class adds log 1 = 0 above the line
    return Terms(sizes, size_times, values, times, np.array([0, held], np.int64), np.array([log_x]))


def _slope_of_all(
    beta: Floats, rows: NDArray[Any], t: Terms, K: int, likelihood: str, kappa: float
) -> tuple[Floats, Floats]:
    """As `_slope`, of the product of all rows' likelihoods, at one beta [1]."""
    first, second = _prior(beta, kappa)
    psi, psi1, at_K, P = digamma(beta), trigamma(beta), K * beta, float(t.starts[1])
    if likelihood == "proportions":
        first += t.log_x + P * K * (digamma(at_K) - psi)
        second += P * K * (K * trigamma(at_K) - psi1)
    else:
        first += (t.times * (digamma(beta + t.q) - psi)).sum() - K * (
            t.n_times * (digamma(at_K + t.n) - digamma(at_K))
        ).sum()
        second += (t.times * (trigamma(beta + t.q) - psi1)).sum() - K * K * (
            t.n_times * (trigamma(at_K + t.n) - trigamma(at_K))
        ).sum()
    f = beta * first
    return f, f + beta * beta * second


def _prior(beta: Floats, kappa: float) -> tuple[Floats, Floats]:
    """First and second derivative of kappa times the log density of Gamma(1/2, 1)."""
    return -kappa * (0.5 / beta + 1), kappa * 0.5 / beta**2


def digamma(x: Floats) -> Floats:
    from scipy.special import psi

    value: Floats = psi(x)
    return value


def trigamma(x: Floats) -> Floats:
    """The derivative of digamma for x > 0, to 1e-11: eight steps of the recurrence, then the asymptotic series. Several times faster than scipy's."""
    x = np.asarray(x, np.float64)
    total = np.zeros_like(x)
    for i in range(8):
        total += 1 / np.square(x + i)
    y = 1 / (x + 8)
    z = y * y
    return total + y + z / 2 + y * z * (1 / 6 - z * (1 / 30 - z * (1 / 42 - z / 30)))
