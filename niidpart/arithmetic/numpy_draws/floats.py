"""Elementary functions and sums for draws, bit for bit as numpy's compiled code has them.

Its generators call the machine's C library, and so does python's `math`. Bits count: with strong
skew the cumulative proportions of the last parties lie within one of them of 1, and that one
decides who gets a class's last example. So what is made of these is promised on one C library.
"""

import math

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
