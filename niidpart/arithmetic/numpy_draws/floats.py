"""Elementary functions and sums for draws, bit for bit as numpy's compiled code has them.

Its generators call the machine's C library, and so does python's `math`. Bits count: with strong
skew the cumulative proportions of the last parties lie within one of them of 1, and that one
decides who gets a class's last example. So what is made of these is promised on one C library.
"""

import math
from collections.abc import Iterator

import numpy as np

from ..exact import Floats

_LANES = 8  # sums that numpy adds side by side
_BLOCK = 128  # values that it adds so at most; more are halved


def log_one(x: float) -> float:
    """Return the natural logarithm of a float from 0 on; of 0 minus infinity.

    Examples
    --------
    >>> log_one(1.0), log_one(0.0)
    (0.0, -inf)
    """
    return math.log(x) if x > 0 else -math.inf


def log1p_one(x: float) -> float:
    """Return the natural logarithm of 1 + x, x above -1.

    Examples
    --------
    >>> log1p_one(0.0)
    0.0
    """
    return math.log1p(x)


def exp_one(x: float) -> float:
    """Return e**x.

    Examples
    --------
    >>> exp_one(0.0), exp_one(-1000.0)
    (1.0, 0.0)
    """
    return math.exp(x)


def raise_one(base: float, exponent: float) -> float:
    """Return base**exponent of floats from 0 on.

    Examples
    --------
    >>> raise_one(0.0, 2.0), raise_one(1.0, 2.0)
    (0.0, 1.0)
    """
    return math.pow(base, exponent)


def add_as_numpy(x: Floats) -> float:
    """Return the sum of an array of one axis, added in the order of numpy's `sum`.

    Up to eight values from first to last, up to 128 in eight lanes, more by halves.

    Examples
    --------
    >>> import numpy as np
    >>> add_as_numpy(np.arange(10.0))
    45.0
    """
    return _add(x.tolist())


def _add(values: list[float]) -> float:
    n = len(values)
    if n > _BLOCK:
        half = n // 2 - n // 2 % _LANES
        return _add(values[:half]) + _add(values[half:])
    n_even = n - n % _LANES
    total = 0.0
    if n_even:
        lanes = values[:_LANES]
        for start in range(_LANES, n_even, _LANES):
            lanes = [a + b for a, b in zip(lanes, values[start : start + _LANES], strict=True)]
        a, b, c, d, e, f, g, h = lanes
        total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for value in values[n_even:]:
        total += value
    return total


def add_float32_as_numpy(x: Floats) -> np.float32:
    """Return the sum of a float32 array of one axis, added in float32 in numpy's order.

    The pieces of equal length, which `_add` would come to one by one, are added side by side.

    Examples
    --------
    >>> float(add_float32_as_numpy(np.arange(1000, dtype=np.float32)))
    499500.0
    """
    pieces = _halve(0, len(x))
    lengths = np.array([length for _, length in pieces])
    starts = np.array([start for start, _ in pieces])
    sums = np.zeros(len(pieces), np.float32)
    for length in np.unique(lengths).tolist():
        is_long = lengths == length
        sums[is_long] = _add_rows(x[starts[is_long, np.newaxis] + np.arange(length)])
    return _add_halves(iter(sums), len(x))


def _halve(start: int, n: int) -> list[tuple[int, int]]:
    """Return (start, length) of the pieces that are added in lanes, from first to last."""
    if n <= _BLOCK:
        return [(start, n)]
    half = n // 2 - n // 2 % _LANES
    return _halve(start, half) + _halve(start + half, n - half)


def _add_halves(sums: Iterator[np.float32], n: int) -> np.float32:
    """Return the sum of the pieces' sums, added as they were halved."""
    if n <= _BLOCK:
        return next(sums)
    half = n // 2 - n // 2 % _LANES
    return _add_halves(sums, half) + _add_halves(sums, n - half)


def _add_rows(x: Floats) -> Floats:
    """Return the sum of each row of x [m, n], n up to `_BLOCK`, in eight lanes."""
    n = x.shape[1]
    n_even = n - n % _LANES
    total = np.zeros(len(x), x.dtype)
    if n_even:
        lanes = x[:, :_LANES]
        for start in range(_LANES, n_even, _LANES):
            lanes = lanes + x[:, start : start + _LANES]
        a, b, c, d, e, f, g, h = lanes.T
        total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for place in range(n_even, n):
        total = total + x[:, place]
    return total
