"""The sign-flip test: whether the mean of paired differences is other than 0.

If two algorithms do not differ, a pair's difference might as well have had the other sign. So all
signs are tried, and p is the share of them whose mean is as far from 0 as the one that was seen.
That is exact for any law of the differences, and for ties. Fisher 1935, section 21.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

MOST_COUNTED = 15  # pairs whose signs are all counted, half of 2^n; of more pairs signs are drawn
_DRAWN = 19_999
_SEED = 0  # of what is drawn: the same differences always have the same p
_ROUNDING = 1e-12  # by which equal sums may differ, for they are added up in other orders


def compute_sign_flip(differences: Sequence[float]) -> float:
    """Return p of the two-sided test.

    Parameters
    ----------
    differences : sequence of float
        One for each pair, at least one.

    Returns
    -------
    float

    Examples
    --------
    >>> compute_sign_flip([1.0, 2.0, 3.0])  # one of the 8 signs on either side
    0.25
    """
    return float(compute_sign_flips(np.asarray([differences], dtype=np.float64))[0])


def compute_sign_flips(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p [cases] of differences [cases, n]."""
    signs = _list_signs(differences.shape[1])
    flipped = np.abs(differences @ signs.T)
    seen = np.abs(differences.sum(axis=1, keepdims=True))
    # By the size of the terms: of terms that cancel the sum is as small as their rounding.
    rounding = _ROUNDING * np.abs(differences).sum(axis=1, keepdims=True)
    is_as_far = flipped >= seen - rounding
    if differences.shape[1] <= MOST_COUNTED:
        share: NDArray[np.float64] = np.mean(is_as_far, axis=1)
        return share
    # The signs that were seen count as one more draw, so that p is never too small.
    drawn: NDArray[np.float64] = (1 + np.count_nonzero(is_as_far, axis=1)) / (1 + _DRAWN)
    return drawn


@cache
def _list_signs(n: int) -> NDArray[np.float64]:
    """Return signs [so many, n]: half of all, as the others are these turned round; or draws."""
    if n > MOST_COUNTED:
        return np.random.default_rng(_SEED).choice([-1.0, 1.0], size=(_DRAWN, n))
    bits = np.arange(2 ** (n - 1))[:, None] >> np.arange(n)
    return np.where(bits & 1, -1.0, 1.0)


def find_least_p(n: int) -> float:
    """Return the smallest p that n pairs can give, when all differences have one sign.

    Parameters
    ----------
    n : int

    Returns
    -------
    float

    Examples
    --------
    >>> find_least_p(5)
    0.0625
    """
    return max(2.0 ** (1 - n), 1 / (1 + _DRAWN))


def count_least_pairs(level: float) -> int | None:
    """Return with how many pairs p can be as small as a level; None where no number is enough.

    Parameters
    ----------
    level : float

    Returns
    -------
    int or None

    Examples
    --------
    >>> count_least_pairs(0.05), count_least_pairs(0.05 / 15)
    (6, 10)
    """
    if level < 1 / (1 + _DRAWN):
        return None
    return max(1, math.ceil(1 - math.log2(level)))
