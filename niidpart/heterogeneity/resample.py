"""Counts drawn at random: each party's examples anew (bootstrap), and IID deals of the same sizes. Cell by cell, so that a party of a
million examples costs no more than one of ten."""

import numpy as np

from ..arithmetic.exact import Floats, normal_quantile
from ..arithmetic.rng import Ints, Stream

_CLASSES = 64  # up to which one class after the other is drawn
_NORMAL = 30.0  # from this variance on a count is a rounded normal with its skewness; below, its distribution is added up exactly


def multinomial(sizes: Ints, counts: Ints, rng: Stream) -> Ints:
    """[M, K] int64: for each row `sizes` [M] draws with replacement from `counts` [M, K], which need not add up to them."""
    return _classes(sizes, counts, rng, replace=True)


def deals(sizes: Ints, totals: Ints, n_deals: int, rng: Stream) -> Ints:
    """[R, S, K] int64: in each of R deals, S parties of `sizes` get examples from a pool of `totals` [K], without replacement.

    The sizes may add up to less than the pool. Multivariate hypergeometric: the pool is divided between the halves of the parties, and
    so on down to one party.
    """
    rest = int(totals.sum() - sizes.sum())
    depth = max(len(sizes), 1).bit_length()  # room for all parties and, last, the rest of the pool
    padded = np.zeros(1 << depth, np.int64)
    padded[: len(sizes)], padded[-1] = sizes, rest
    pools = np.broadcast_to(totals, (n_deals, 1, len(totals)))
    for level in range(1, depth + 1):
        left = padded.reshape(1 << level, -1).sum(axis=1)[::2]
        M = n_deals * len(left)
        first = _classes(np.tile(left, n_deals), pools.reshape(M, -1), rng, replace=False).reshape(
            pools.shape
        )
        pools = np.stack([first, pools - first], axis=2).reshape(n_deals, 1 << level, -1)
    return np.ascontiguousarray(pools[:, : len(sizes)])


def _classes(draws: Ints, pools: Ints, rng: Stream, *, replace: bool) -> Ints:
    """[M, K]: class after class, how many of what is still to be drawn are of it. Of many classes, half of them after half."""
    if pools.shape[1] > _CLASSES:
        return _halves(draws, pools, rng, replace)
    out = np.zeros(pools.shape, np.int64)
    left, total = draws.copy(), pools.sum(axis=1)
    for k in range(pools.shape[1]):
        good = pools[:, k]
        out[:, k] = np.where(good == total, left, 0)
        open_ = np.flatnonzero((left > 0) & (good > 0) & (good < total))
        if open_.size:
            out[open_, k] = _count(
                rng.uniform(open_.size), left[open_], good[open_], total[open_], replace
            )
        left -= out[:, k]
        total = total - good
    return out


def _halves(draws: Ints, pools: Ints, rng: Stream, replace: bool) -> Ints:
    """As `_classes`: how many of the draws are of the first half of the classes, of the first quarter, and so on. Nothing is a loop over classes."""
    M, K = pools.shape
    padded = np.zeros((M, 1 << (K - 1).bit_length()), np.int64)
    padded[:, :K] = pools
    sums = [padded]
    while sums[-1].shape[1] > 1:
        sums.append(sums[-1][:, ::2] + sums[-1][:, 1::2])
    found = draws[:, None]
    for level in range(len(sums) - 1, 0, -1):
        total, good = sums[level], sums[level - 1][:, ::2]
        first = np.where(good == total, found, 0)
        at = np.nonzero((found > 0) & (good > 0) & (good < total))
        if at[0].size:
            first[at] = _count(rng.uniform(at[0].size), found[at], good[at], total[at], replace)
        found = np.stack([first, found - first], axis=2).reshape(M, -1)
    return np.ascontiguousarray(found[:, :K])


def dirichlet(shapes: Floats, rng: Stream) -> Floats:
    """[..., K] for each row of `shapes` [..., K], all above 0, a draw from the Dirichlet distribution with these parameters.

    Logarithms of gamma variates by Marsaglia and Tsang, ACM TOMS 26 (2000); below 1 by Gamma(shape + 1) * U**(1/shape).
    """
    shape = shapes.reshape(-1)
    d = np.where(shape < 1, shape + 1, shape) - 1 / 3
    logs = np.empty(len(shape))
    pending = np.arange(len(shape))
    while pending.size:
        at = d[pending]
        x, u = rng.normal(pending.size), rng.uniform(pending.size)
        v = 1 + x / np.sqrt(9 * at)
        v = v * v * v
        log_v = np.log(np.where(v > 0, v, 1.0))
        accepted = (v > 0) & (np.log(u) < 0.5 * x * x + at - at * v + at * log_v)
        logs[pending[accepted]] = np.log(at[accepted]) + log_v[accepted]
        pending = pending[~accepted]
    low = np.flatnonzero(shape < 1)
    logs[low] += np.log(rng.uniform(low.size)) / shape[low]
    p: Floats = logs.reshape(shapes.shape)
    p = np.exp(p - p.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return p


def _count(u: Floats, n: Ints, good: Ints, total: Ints, replace: bool) -> Ints:
    """[M] the u-quantile of how many of n draws from `total` are among the `good`: binomial (replace) or hypergeometric."""
    flip = 2 * good > total
    a, b = n, np.where(flip, total - good, good)
    swap = np.zeros(len(n), bool) if replace else 2 * n > total
    a = np.where(
        swap, total - n, n
    )  # now both are at most half, so the mean is small where the variance is
    p = b / total
    variance = a * p * (1 - p) * (1.0 if replace else (total - a) / np.maximum(total - 1, 1))
    q = np.empty(len(n), np.int64)
    small = variance < _NORMAL
    q[small] = _added_up(u[small], a[small], b[small], total[small], replace)
    big = ~small
    q[big] = _normal(u[big], a[big], p[big], variance[big], total[big], replace)
    q = np.clip(q, 0, a if replace else np.minimum(a, b))
    q = np.where(swap, b - q, q)
    return np.where(flip, n - q, q)


def _normal(u: Floats, n: Ints, p: Floats, variance: Floats, total: Ints, replace: bool) -> Ints:
    """Rounded normal quantile with the term of the skewness (Cornish and Fisher)."""
    z = normal_quantile(u)
    third = (1 - 2 * p) * (
        1.0 if replace else (total - 2 * n) / np.maximum(total - 2, 1)
    )  # skewness times standard deviation
    x: Floats = n * p + np.sqrt(variance) * z + third * (z * z - 1) / 6
    return np.ceil(x - 0.5).astype(np.int64)


def _added_up(u: Floats, n: Ints, good: Ints, total: Ints, replace: bool) -> Ints:
    """The smallest q whose cumulative probability reaches u: probabilities from 0 on, each from the one before."""
    q = np.zeros(len(u), np.int64)
    if replace:
        odds = good / (total - good)
        mass = np.exp(n * np.log1p(-(good / total)))
    else:
        odds = np.ones(len(u))
        mass = np.exp(
            n * np.log1p(-(good / total)) + _falling(total - good, n) - _falling(total, n)
        )
    rows = np.arange(len(u))
    left = u - mass
    top = n if replace else np.minimum(n, good)
    while rows.size:
        more = (left[rows] > 0) & (q[rows] < top[rows])
        rows = rows[more]
        i, a = q[rows], n[rows]
        above = (
            (a - i) * odds[rows]
            if replace
            else (a - i)
            * (good[rows] - i).astype(np.float64)
            / (total[rows] - good[rows] - a + i + 1)
        )
        mass[rows] *= above / (i + 1)
        left[rows] -= mass[rows]
        q[rows] += 1
    return q


def _falling(x: Ints, n: Ints) -> Floats:
    """log(x (x - 1) ... (x - n + 1)) - n log x for n <= x, without the cancellation of two large log-gammas."""
    from scipy.special import gammaln

    far = x >= 1000
    y, m = np.where(far, x, 1000).astype(np.float64), np.where(far, n, 0)
    stirling = -(y - m + 0.5) * np.log1p(-m / y) - m + (1 / y - 1 / (y - m)) / 12
    near, m = np.where(far, 1, x).astype(np.float64), np.where(far, 0, n)
    exact = gammaln(near + 1) - gammaln(near - m + 1) - m * np.log(near)
    value: Floats = np.where(far, stirling, exact)
    return value
