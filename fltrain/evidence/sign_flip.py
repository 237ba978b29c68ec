"""The sign-flip test: whether the mean of paired differences is other than 0.

If two algorithms do not differ, a pair's difference might as well have had the other sign. So all
signs are tried, and p is the share of them whose mean is as far from 0 as the one that was seen.
That is exact for any law of the differences, and for ties. Fisher 1935, section 21.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from niidpart.arithmetic.exact import Floats

__all__ = ["compute_sign_flip", "count_least_pairs", "find_least_p"]

_MOST_LISTED = 12  # pairs whose signs stand in one table, for many cases at once
MOST_COUNTED = 30  # pairs whose signs are all counted; of more pairs on a grid
_CELLS_A_PAIR, _MOST_CELLS = 2048, 2**19  # of the grid
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
    case = np.asarray([differences], dtype=np.float64)
    (p,) = compute_sign_flips(case)
    return float(p)


def compute_sign_flips(differences: Floats) -> Floats:
    """Return p [cases] of differences [cases, n]."""
    n = differences.shape[1]
    if n <= _MOST_LISTED:
        return _try_all_signs(differences)
    compute = _count_by_halves if n <= MOST_COUNTED else _count_on_grid
    sizes = np.abs(differences)
    least = _find_least_sums(differences)
    cases = zip(sizes, least.tolist(), strict=True)
    return np.asarray([compute(*case) for case in cases])


def _find_least_sums(differences: Floats) -> Floats:
    """Return [cases] from which sum on other signs are as far from 0 as those that were seen."""
    # By the size of the terms: of terms that cancel the sum is as small as their rounding.
    sizes = np.abs(differences)
    rounding = _ROUNDING * sizes.sum(axis=1)
    sums = differences.sum(axis=1)
    least: Floats = np.abs(sums) - rounding
    return least


def _try_all_signs(differences: Floats) -> Floats:
    signs = _list_signs(differences.shape[1])
    flipped = np.abs(differences @ signs.T)
    least = _find_least_sums(differences)
    share: Floats = np.mean(flipped >= least[:, None], axis=1)
    return share


@cache
def _list_signs(n: int) -> Floats:
    """Return signs [2^(n - 1), n]: half of all, as the others are these turned round."""
    numbers = np.arange(2 ** (n - 1))
    bits = numbers[:, None] >> np.arange(n)
    return np.where(bits & 1, -1.0, 1.0)


def _count_by_halves(sizes: Floats, least: float) -> float:
    """Return the share of signs whose sum is at least so far from 0.

    The sums of one half of the pairs, each beside those of the other half in order: 2^(n / 2) looks
    in place of 2^n sums.
    """
    if least <= 0:
        return 1.0
    middle = len(sizes) // 2
    first = _list_sums(sizes[:middle])
    second = np.sort(_list_sums(sizes[middle:]))
    places = np.searchsorted(second, least - first, side="left")
    above = len(second) - places
    n_choices = len(first) * len(second)
    # Signs turned round give the sums below: as many.
    return float(2 * above.sum() / n_choices)


def _list_sums(sizes: Floats) -> Floats:
    """Return the sums [2^n] of all choices of signs."""
    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate([sums - size, sums + size])
    return sums


def _count_on_grid(sizes: Floats, least: float) -> float:
    """Return the share of signs whose sum is at least so far from 0, never too small a one.

    A choice of signs is as far where those pairs whose sign is turned add up to little. These sums
    are counted on a grid of what they may add up to, each size rounded down, so that none is
    missed. A pair that is larger than that is never turned, and makes the grid no coarser.
    """
    if least <= 0:
        return 1.0
    largest = float(sizes.sum())
    reach = (largest - least) / 2
    cells = min(_CELLS_A_PAIR * len(sizes), _MOST_CELLS)
    places = np.floor(sizes / reach * cells)
    steps = places.astype(np.int64)
    shares = np.zeros(cells + 1)  # [sum of turned pairs] the share of signs
    shares[0] = 1.0
    for step in steps:
        turned = np.zeros_like(shares)
        n_kept = max(cells + 1 - step, 0)
        turned[step:] = shares[:n_kept]
        shares = (shares + turned) / 2
    both_sides = 2 * shares.sum()
    return float(min(1.0, both_sides))


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
    return math.ldexp(1.0, 1 - n)


def count_least_pairs(level: float) -> int:
    """Return with how many pairs p can be as small as a level.

    Parameters
    ----------
    level : float
        Above 0.

    Returns
    -------
    int

    Examples
    --------
    >>> count_least_pairs(0.05), count_least_pairs(0.05 / 15)
    (6, 10)
    """
    return max(1, math.ceil(1 - math.log2(level)))
