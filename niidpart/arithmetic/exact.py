"""Functions of floats that give the same bits on every machine.

numpy's own `log` and `exp` call the platform's C library or a SIMD kernel, and these differ in the
last bit. The functions here are made of IEEE + - * / sqrt on float64 arrays, each of which has one
right result, and of scaling by powers of two, which is exact.
"""

from collections.abc import Callable
from functools import wraps

import numpy as np
from numpy.typing import NDArray

from .angles import find_direction

__all__ = [
    "Floats",
    "accumulate",
    "add_in_order",
    "exp",
    "find_direction",
    "log",
    "normal_quantile",
]

Floats = NDArray[np.float64]

# Values computed at a time, so that temporaries stay in the cache. No value depends on it.
_BLOCK = 1 << 13

# ln 2 in two parts. The first has 32 bits, so that its product with an integer below 2**20 is
# exact; the second is the rest.
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_LOG2_E = 1.4426950408889634
_SQRT_HALF = 0.7071067811865476

# exp is 0 below and is not asked for above; 2**n stays a normal number in between.
_EXP_LIMIT = 700.0

# Taylor coefficients, highest power first. atanh(f)/f in powers of f**2 for |f| <= 0.1716: the
# next term is below 1e-19. exp(r) for |r| <= ln(2)/2: the next term is below 1e-17.
_ATANH = [1 / (2 * k + 1) for k in range(11, -1, -1)]
_EXP = [
    1 / 6227020800,  # 1/13!
    1 / 479001600,
    1 / 39916800,
    1 / 3628800,
    1 / 362880,
    1 / 40320,
    1 / 5040,
    1 / 720,
    1 / 120,
    1 / 24,
    1 / 6,
    0.5,
    1.0,
    1.0,
]


def _in_blocks(f: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    """Return `f`, which treats each value alone, applied to one block of values after another."""

    @wraps(f)
    def blockwise(x: Floats) -> Floats:
        if x.size <= _BLOCK:
            return f(x)
        flat, out = x.reshape(-1), np.empty(x.size)
        for start in range(0, x.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            out[block] = f(flat[block])
        return out.reshape(x.shape)

    return blockwise


def _evaluate(coefficients: list[float], x: Floats) -> Floats:
    """Return a polynomial at x by Horner's rule, which fixes the order of all operations."""
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total *= x
        total += coefficient
    return total


@_in_blocks
def log(x: Floats) -> Floats:
    """Return the natural logarithm, to about 1 ulp.

    Parameters
    ----------
    x : array of float64
        Positive values.

    Returns
    -------
    array of float64
        Of the shape of `x`.

    Notes
    -----
    x = m * 2**n with m in [sqrt(1/2), sqrt(2)), so log(x) = n * ln(2) + 2 * atanh(f) with
    f = (m - 1) / (m + 1) near 0.

    Examples
    --------
    >>> log(np.array([1.0, 2.0])).tolist()
    [0.0, 0.6931471805599453]
    """
    mantissa, exponent = np.frexp(x)  # mantissa in [0.5, 1)
    is_low = mantissa < _SQRT_HALF
    mantissa = np.where(is_low, 2 * mantissa, mantissa)
    n = (exponent - is_low).astype(np.float64)
    f = (mantissa - 1) / (mantissa + 1)
    log_mantissa = 2 * f * _evaluate(_ATANH, f * f)
    # The small terms are added to each other first: the order is part of what is promised.
    result: Floats = n * _LN2_HIGH + (log_mantissa + n * _LN2_LOW)
    return result


@_in_blocks
def exp(x: Floats) -> Floats:
    """Return e**x, to about 1 ulp.

    Parameters
    ----------
    x : array of float64
        Values up to 700.

    Returns
    -------
    array of float64
        Of the shape of `x`; 0 where x is below -700.

    Notes
    -----
    x = n * ln(2) + r with r from -ln(2)/2 to ln(2)/2, so e**x = e**r * 2**n.

    Examples
    --------
    >>> exp(np.array([0.0, 1.0, -1000.0])).round(9).tolist()
    [1.0, 2.718281828, 0.0]
    """
    clipped = np.maximum(x, -_EXP_LIMIT)
    n = np.rint(clipped * _LOG2_E)
    r = (clipped - n * _LN2_HIGH) - n * _LN2_LOW
    scaled = np.ldexp(_evaluate(_EXP, r), n.astype(np.int32))
    return np.where(x < -_EXP_LIMIT, 0.0, scaled)


def add_in_order(x: Floats) -> Floats:
    """Return the sums over the last axis, added from first to last.

    numpy's `sum` adds in an order of its own, which changes with version and machine.

    Parameters
    ----------
    x : array of float64 [..., n]

    Returns
    -------
    array of float64 [..., 1]

    Examples
    --------
    >>> add_in_order(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[3.0], [7.0]]
    """
    return accumulate(x)[..., -1:]


def accumulate(x: Floats) -> Floats:
    """Return the sums over the last axis up to each place, added from first to last.

    Parameters
    ----------
    x : array of float64 [..., n]

    Returns
    -------
    array of float64 [..., n]

    Examples
    --------
    >>> accumulate(np.array([1.0, 2.0, 4.0])).tolist()
    [1.0, 3.0, 7.0]
    """
    return np.cumsum(x, axis=-1)


# Rational approximations of the normal quantile, numerator and denominator with the highest power
# first: Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988).
_CENTRE = (
    [2.5090809287301226727e3, 3.3430575583588128105e4,
     6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3,
     1.3314166789178437745e2, 3.3871328727963666080e0],
    [5.2264952788528545610e3, 2.8729085735721942674e4,
     3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2,
     4.2313330701600911252e1, 1.0],
)  # fmt: skip
_TAIL = (
    [7.74545014278341407640e-4, 2.27238449892691845833e-2,
     2.41780725177450611770e-1, 1.27045825245236838258e0,
     3.64784832476320460504e0, 5.76949722146069140550e0,
     4.63033784615654529590e0, 1.42343711074968357734e0],
    [1.05075007164441684324e-9, 5.47593808499534494600e-4,
     1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940e0,
     2.05319162663775882187e0, 1.0],
)  # fmt: skip
_FAR_TAIL = (
    [2.01033439929228813265e-7, 2.71155556874348757815e-5,
     1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580e0,
     5.46378491116411436990e0, 6.65790464350110377720e0],
    [2.04426310338993978564e-15, 1.42151175831644588870e-7,
     1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1,
     5.99832206555887937690e-1, 1.0],
)  # fmt: skip
_CENTRE_ENDS = 0.425  # from 1/2: where the first of them ends


def _divide(table: tuple[list[float], list[float]], r: Floats) -> Floats:
    """Return the rational function of a table, numerator over denominator, at r."""
    numerator, denominator = table
    return _evaluate(numerator, r) / _evaluate(denominator, r)


def normal_quantile(p: Floats) -> Floats:
    """Return x with Phi(x) = p, to about 1e-15: the inverse of the normal distribution function.

    Parameters
    ----------
    p : array of float64
        Values in the open interval (0, 1).

    Returns
    -------
    array of float64
        Of the shape of `p`.

    Examples
    --------
    >>> normal_quantile(np.array([0.5, 0.975])).round(4).tolist()
    [0.0, 1.96]
    """
    x = _invert_centre(p)
    outer = np.flatnonzero(np.abs(p.reshape(-1) - 0.5) > _CENTRE_ENDS)
    if outer.size:
        x.reshape(-1)[outer] = _invert_tail(p.reshape(-1)[outer])
    return x


@_in_blocks
def _invert_centre(p: Floats) -> Floats:
    """Return the quantile of values in the centre; of others something."""
    q = p - 0.5
    r = np.maximum(0.180625 - q * q, 0.0)
    return q * _divide(_CENTRE, r)


@_in_blocks
def _invert_tail(p: Floats) -> Floats:
    """Return the quantile of values outside the centre."""
    is_low = p < 0.5
    edge = np.where(is_low, p, 1 - p)  # distance to the nearer end of (0, 1)
    r = np.sqrt(-log(edge))
    x = _divide(_TAIL, r - 1.6)
    far = np.flatnonzero(r > 5.0)
    if far.size:
        x[far] = _divide(_FAR_TAIL, r[far] - 5.0)
    return np.where(is_low, -x, x)
