"""Draws from the symmetric Dirichlet distribution, with the same bits on every machine."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import UsageError
from . import exact
from .exact import Floats

# Beyond these concentrations the logarithms of the variates lose their digits.
_LEAST_BETA, _LARGEST_BETA = 1e-9, 1e9
# Variates drawn at a time: part of the definition of a stream, another value gives other draws.
_BLOCK = 1 << 16
# Values computed at a time, so that temporaries stay in the cache. No value depends on it.
_CACHED = 1 << 13


class Variates(Protocol):
    """What the draws are made of; a `Stream` has both."""

    def normal(self, n: int) -> Floats:
        """Return [n] standard normal floats."""
        ...

    def uniform(self, n: int) -> Floats:
        """Return [n] floats that are uniform on (0, 1)."""
        ...


def draw_proportions(rng: Variates, beta: float, shape: tuple[int, ...]) -> Floats:
    """Return draws from Dir(beta) over the last axis of `shape`; see `Stream.dirichlet`."""
    if not _LEAST_BETA <= beta <= _LARGEST_BETA:
        raise UsageError(
            f"beta is {beta}; the Dirichlet concentration must be above 0, from 1e-9 to 1e9 "
            "(0.1 is strong skew, 100 nearly none)"
        )
    n = 1
    for length in shape:
        n *= length
    # Gamma variates of a small beta are too small for a float: their logarithms are not.
    logs = draw_log_gammas(rng, beta, n)
    width = shape[-1]
    step = max(1, _BLOCK // width)
    rows = logs.reshape(-1, width)
    for start in range(0, len(rows), step):
        _normalise(rows[start : start + step])
    return logs.reshape(shape)


def _normalise(logs: Floats) -> None:
    """Turn logarithms into proportions, in place: each row (last axis) sums to 1."""
    logs -= logs.max(axis=-1, keepdims=True)
    logs[...] = exact.exp(logs)
    logs /= exact.add_in_order(logs)


def draw_log_gammas(rng: Variates, shape: float, n: int) -> Floats:
    """Return [n] logarithms of Gamma(shape) variates.

    Marsaglia and Tsang, ACM TOMS 26 (2000): d * v with v = (1 + c * x)**3 for a normal x, which
    is accepted with a probability that makes it a variate of Gamma(d + 1/3). A shape below 1
    by Gamma(shape + 1) * U**(1/shape).
    """
    is_low = shape < 1
    boosted = shape + 1 if is_low else shape
    d = boosted - 1 / 3
    out = np.empty(n)
    for start in range(0, n, _BLOCK):
        block = out[start : start + _BLOCK]
        pending = np.arange(len(block))
        while pending.size:
            x = rng.normal(pending.size)
            u = rng.uniform(pending.size)
            logs, is_accepted = _propose(x, u, d)
            block[pending] = logs  # what is not accepted is drawn again, and written over
            pending = pending[~is_accepted]
        if is_low:
            log_u = exact.log(rng.uniform(len(block)))
            block += log_u / shape
    return out


def _propose(x: Floats, u: Floats, d: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Return a logarithm of a variate for each normal and uniform float, and which are accepted."""
    c = 1 / float(np.sqrt(9 * d))
    # numpy's own logarithm may differ by the last bit from machine to machine.
    [log_d] = exact.log(np.array([d])).tolist()
    logs = np.empty(len(x))
    is_accepted = np.empty(len(x), bool)
    for start in range(0, len(x), _CACHED):
        some = slice(start, start + _CACHED)
        normal = x[some]
        root = 1 + c * normal
        v = root * root * root  # a power is not exact everywhere
        is_positive = v > 0
        log_v = exact.log(np.where(is_positive, v, 1.0))
        # The sum from left to right: another order would give other last bits.
        log_limit = 0.5 * normal * normal + d - d * v + d * log_v
        is_accepted[some] = is_positive & (exact.log(u[some]) < log_limit)
        logs[some] = log_d + log_v
    return logs, is_accepted
