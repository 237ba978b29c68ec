"""Counts drawn at random: each party's examples again (bootstrap), and IID deals of the same sizes.

Cell by cell, so that a party of a million examples costs no more than one of ten.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from .quantiles import CountLaw, count_quantile

_CLASSES = 64  # up to which one class after the other is drawn


def draw_multinomial(sizes: Ints, counts: Ints, rng: Stream) -> Ints:
    """Return [M, K] int64: for each row `sizes` [M] draws with replacement from `counts` [M, K].

    The counts of a row need not add up to its size.
    """
    return _draw_counts(sizes, counts, rng, replace=True)


def draw_deals(sizes: Ints, totals: Ints, n_deals: int, rng: Stream) -> Ints:
    """Return [R, S, K] int64: in R deals, S parties of `sizes` get examples of a pool `totals` [K].

    Without replacement; the sizes may add up to less than the pool. Multivariate hypergeometric:
    the pool is divided between the halves of the parties, and so on down to one party, which takes
    as many steps as the number of parties has binary digits.
    """
    rest = int(totals.sum() - sizes.sum())
    depth = max(len(sizes), 1).bit_length()  # room for all parties and, last, the rest of the pool
    padded = np.zeros(1 << depth, np.int64)
    padded[: len(sizes)] = sizes
    padded[-1] = rest
    pools = np.broadcast_to(totals, (n_deals, 1, len(totals)))
    for level in range(1, depth + 1):
        in_halves = padded.reshape(1 << level, -1).sum(axis=1)
        to_left = in_halves[::2]
        flat = pools.reshape(n_deals * len(to_left), -1)
        left = _draw_counts(np.tile(to_left, n_deals), flat, rng, replace=False)
        left = left.reshape(pools.shape)
        pools = np.stack([left, pools - left], axis=2).reshape(n_deals, 1 << level, -1)
    return np.ascontiguousarray(pools[:, : len(sizes)])


def draw_dirichlet(shapes: Floats, rng: Stream) -> Floats:
    """Return [..., K]: for each row of `shapes` [..., K], all above 0, a draw from its Dirichlet.

    Gamma variates by Marsaglia and Tsang, ACM TOMS 26 (2000); below 1 by
    Gamma(shape + 1) * U**(1/shape). All in logarithms, since variates of small shapes underflow.

    `Stream.dirichlet` does the same for one symmetric shape, exactly, for digests. Here every cell
    has a shape of its own, millions of them, and nothing is stored that depends on the last bit of
    a logarithm: numpy's, which is several times faster, will do.
    """
    shape = shapes.reshape(-1)
    d = np.where(shape < 1, shape + 1, shape) - 1 / 3
    logs = np.empty(len(shape))
    pending = np.arange(len(shape))
    while pending.size:
        of_pending = d[pending]
        x, u = rng.normal(pending.size), rng.uniform(pending.size)
        v = 1 + x / np.sqrt(9 * of_pending)
        v = v * v * v
        log_v = np.log(np.where(v > 0, v, 1.0))
        bound = 0.5 * x * x + of_pending - of_pending * v + of_pending * log_v
        accepted = (v > 0) & (np.log(u) < bound)
        logs[pending[accepted]] = np.log(of_pending[accepted]) + log_v[accepted]
        pending = pending[~accepted]
    low = np.flatnonzero(shape < 1)
    logs[low] += np.log(rng.uniform(low.size)) / shape[low]
    p: Floats = logs.reshape(shapes.shape)
    p = np.exp(p - p.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return p


def _draw_counts(draws: Ints, pools: Ints, rng: Stream, *, replace: bool) -> Ints:
    """Return [M, K]: how many of `draws` [M] from each row of `pools` [M, K] are of each class."""
    if pools.shape[1] > _CLASSES:
        return _draw_by_halves(draws, pools, rng, replace)
    return _draw_by_classes(draws, pools, rng, replace)


def _draw_by_classes(draws: Ints, pools: Ints, rng: Stream, replace: bool) -> Ints:
    """Class after class: how many of the draws that are left are of it."""
    found = np.zeros(pools.shape, np.int64)
    left, total = draws.copy(), pools.sum(axis=1)
    for k in range(pools.shape[1]):
        found[:, k] = _draw_among(left, pools[:, k], total, rng, replace)
        left -= found[:, k]
        total = total - pools[:, k]
    return found


def _draw_by_halves(draws: Ints, pools: Ints, rng: Stream, replace: bool) -> Ints:
    """How many of the draws are of the first half of the classes, of the first quarter, and so on.

    As many steps as K has binary digits, so that nothing is a loop over classes.
    """
    M, K = pools.shape
    padded = np.zeros((M, 1 << (K - 1).bit_length()), np.int64)
    padded[:, :K] = pools
    sums = [padded]
    while sums[-1].shape[1] > 1:
        halves = sums[-1]
        sums.append(halves[:, ::2] + halves[:, 1::2])
    found = draws[:, None]
    for level in range(len(sums) - 1, 0, -1):
        first = _draw_among(found, sums[level - 1][:, ::2], sums[level], rng, replace)
        found = np.stack([first, found - first], axis=2).reshape(M, -1)
    return np.ascontiguousarray(found[:, :K])


def _draw_among(
    draws: NDArray[Any], good: NDArray[Any], total: NDArray[Any], rng: Stream, replace: bool
) -> Ints:
    """Return how many of the draws from `total` are among the `good`, cell by cell.

    Words are taken for those cells alone where chance decides.
    """
    first = np.where(good == total, draws, 0)
    open_cells = np.nonzero((draws > 0) & (good > 0) & (good < total))
    if open_cells[0].size:
        law = CountLaw(draws[open_cells], good[open_cells], total[open_cells], replace)
        first[open_cells] = count_quantile(rng.uniform(open_cells[0].size), law)
    return first
