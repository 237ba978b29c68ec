"""Functions that give the same bits on every machine: made of IEEE + - * / sqrt on float64 arrays, and exact scaling by powers of two.

numpy's own `log` and `exp` call the platform's C library or a SIMD kernel, and these differ in the last bit.
"""

from collections.abc import Callable
from functools import wraps

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_BLOCK = (
    1 << 13
)  # values computed at a time, so that temporaries stay in the cache. No value depends on it.

_LN2_HIGH = (
    6.93147180369123816490e-01  # ln 2 in 32 bits, so that an integer below 2**20 times it is exact
)
_LN2_LOW = 1.90821492927058770002e-10
_ATANH = [
    1 / (2 * k + 1) for k in range(11, -1, -1)
]  # atanh(f)/f in powers of f**2; the next term is below 1e-19 for |f| <= 0.1716
_EXP = [
    1 / 6227020800,
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
    """`f`, which treats each value alone, on one block of values after another."""

    @wraps(f)
    def blockwise(x: Floats) -> Floats:
        if x.size <= _BLOCK:
            return f(x)
        flat, out = x.reshape(-1), np.empty(x.size)
        for start in range(0, x.size, _BLOCK):
            out[start : start + _BLOCK] = f(flat[start : start + _BLOCK])
        return out.reshape(x.shape)

    return blockwise


def _horner(coefficients: list[float], x: Floats) -> Floats:
    total = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        total *= x
        total += c
    return total


@_in_blocks
def log(x: Floats) -> Floats:
    """Natural logarithm of positive float64, to about 1 ulp. Same shape as `x`."""
    mantissa, exponent = np.frexp(x)
    low = mantissa < 0.7071067811865476
    mantissa = np.where(low, 2 * mantissa, mantissa)
    n = (exponent - low).astype(np.float64)
    f = (mantissa - 1) / (mantissa + 1)
    result: Floats = n * _LN2_HIGH + (2 * f * _horner(_ATANH, f * f) + n * _LN2_LOW)
    return result


@_in_blocks
def exp(x: Floats) -> Floats:
    """e**x for float64 x <= 700, to about 1 ulp; 0 below -700. Same shape as `x`."""
    n = np.rint(np.maximum(x, -700.0) * 1.4426950408889634)
    r = (np.maximum(x, -700.0) - n * _LN2_HIGH) - n * _LN2_LOW
    return np.where(x < -700.0, 0.0, np.ldexp(_horner(_EXP, r), n.astype(np.int32)))


# Rational approximations of the normal quantile: Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988). Highest power first.
_CENTRE = (
    [2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0],
    [5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0],
)  # fmt: skip
_TAIL = (
    [7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
     3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0],
    [1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0],
)  # fmt: skip
_FAR_TAIL = (
    [2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0],
    [2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0],
)  # fmt: skip


def _ratio(table: tuple[list[float], list[float]], r: Floats) -> Floats:
    return _horner(table[0], r) / _horner(table[1], r)


@_in_blocks
def normal_quantile(p: Floats) -> Floats:
    """x with Phi(x) = p for p in (0, 1), to about 1e-15. Same shape as `p`."""
    q = p - 0.5
    x = q * _ratio(_CENTRE, np.maximum(0.180625 - q * q, 0.0))
    outer = np.abs(q) > 0.425
    edge = np.where(q[outer] < 0, p[outer], 1 - p[outer])
    r = np.sqrt(-log(edge))
    tail = np.where(r <= 5.0, _ratio(_TAIL, r - 1.6), _ratio(_FAR_TAIL, r - 5.0))
    x[outer] = np.where(q[outer] < 0, -tail, tail)
    return x
