"""Cosine and sine with the same bits on every machine."""

import numpy as np

# Taylor coefficients in powers of x**2, highest power first. For |x| <= pi/4 the next term is below
# 1e-17.
_COSINE = (1 / 20922789888000, -1 / 87178291200, 1 / 479001600, -1 / 3628800, 1 / 40320,
           -1 / 720, 1 / 24, -1 / 2, 1.0)  # fmt: skip
_SINE = (1 / 355687428096000, -1 / 1307674368000, 1 / 6227020800, -1 / 39916800, 1 / 362880,
         -1 / 5040, 1 / 120, -1 / 6, 1.0)  # fmt: skip
_RADIANS = float(np.pi) / 180


def find_direction(degrees: float) -> tuple[float, float]:
    """Return (cosine, sine) of an angle; of a multiple of 90 degrees they are whole.

    Parameters
    ----------
    degrees : float

    Returns
    -------
    tuple of two floats

    Examples
    --------
    >>> find_direction(90.0)
    (-0.0, 1.0)
    >>> [round(x, 6) for x in find_direction(60.0)]
    [0.5, 0.866025]
    """
    quarter = round(degrees / 90)
    x = (degrees - 90 * quarter) * _RADIANS  # -pi/4 .. pi/4
    cosine, sine = _evaluate(_COSINE, x * x), x * _evaluate(_SINE, x * x)
    for _ in range(quarter % 4):
        cosine, sine = -sine, cosine
    return cosine, sine


def _evaluate(coefficients: tuple[float, ...], x: float) -> float:
    """Return a polynomial at x by Horner's rule, which fixes the order of all operations."""
    total = 0.0
    for coefficient in coefficients:
        total = total * x + coefficient
    return total
