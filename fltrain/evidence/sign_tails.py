"""p of the sign-flip test by its tail's saddlepoint, for many cases of many pairs at once.

Robinson, Annals of Statistics 10, 1 (1982), by the formula of Lugannani and Rice. Near enough to
say what a design would see; a claim rests on counted signs.
"""

import numpy as np
from scipy import stats

from niidpart.arithmetic.exact import Floats

from .sign_flip import find_least_p

_STEPS = 20  # of Newton's way to the saddlepoint
_NEAR = 0.999  # of the largest sum: nearer to it the tail is of single choices of signs
_LEAST_REACH = 1e-3  # below it p is 1 but for less than the formula's own rounding


def approximate_sign_flips(differences: Floats) -> Floats:
    """Return p [cases] of differences [cases, n], about."""
    n = differences.shape[1]
    squares = np.sum(differences**2, axis=1)
    lengths = np.sqrt(squares)
    sizes = np.abs(differences) / lengths[:, None]
    sums = np.sum(differences, axis=1)
    seen = np.abs(sums) / lengths
    most = sizes.sum(axis=1)
    within = np.minimum(seen, _NEAR * most)
    p = 2 * _find_tails(sizes, within)
    p = np.where(within < _LEAST_REACH, 1.0, p)
    least: Floats = np.clip(p, find_least_p(n), 1.0)
    return least


def _find_tails(sizes: Floats, seen: Floats) -> Floats:
    """Return [cases] the share of signs whose sum is at least what was seen."""
    tilt = _find_saddlepoints(sizes, seen)
    tilted = tilt[:, None] * sizes
    terms = np.logaddexp(tilted, -tilted) - np.log(2)
    cumulants = np.sum(terms, axis=1)
    bent = sizes / np.cosh(tilted)
    curvature = np.sum(bent**2, axis=1)
    least = _LEAST_REACH**2
    height = 2 * (tilt * seen - cumulants)
    reach = np.sqrt(np.maximum(height, least))
    scaled = tilt * np.sqrt(curvature)
    scaled = np.maximum(scaled, least)
    density = stats.norm.pdf(reach)
    rest = density * (1 / scaled - 1 / reach)
    tails: Floats = stats.norm.sf(reach) + rest
    return tails


def _find_saddlepoints(sizes: Floats, seen: Floats) -> Floats:
    """Return [cases] the tilt under which signs add up to what was seen on the average."""
    tilt = seen
    for _ in range(_STEPS):
        tilted = tilt[:, None] * sizes
        bent = np.tanh(tilted)
        mean = np.sum(sizes * bent, axis=1)
        excess = mean - seen
        variances = sizes**2 * (1 - bent**2)
        slope = np.sum(variances, axis=1)
        # The mean is concave in the tilt: from below Newton's steps never go too far.
        tilt = tilt - excess / slope
    return tilt
