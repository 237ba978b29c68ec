"""What a design of n pairs could have seen, and how many pairs would see a wanted difference."""

import math
from functools import cache

import numpy as np

from .sign_flip import compute_sign_flips, count_least_pairs, find_least_p

POWER = 0.8
# With fewer pairs the test's p goes in coarse steps, which a formula for t does not know.
_MOST_SIMULATED = 12
_DRAWS = 4_000
_HALVINGS = 12
_LARGEST_EFFECT = 16.0  # deviations; with two pairs p is .5 whatever they are
_MOST_PAIRS = 1_000_000
_SEED = 0


def find_detectable(n: int, level: float, power: float = POWER) -> float | None:
    """Return the smallest mean difference that the sign-flip test would see, in deviations.

    Parameters
    ----------
    n : int
        Pairs.
    level : float
        At which p counts: 0.05, or with Holm over 15 comparisons 0.05 / 15.
    power : float
        How often it is to be seen, where differences are normal.

    Returns
    -------
    float or None
        In sample deviations of the differences; None where n pairs cannot reach the level.

    Examples
    --------
    >>> find_detectable(5, 0.05) is None
    True
    >>> 1.0 < find_detectable(10, 0.05) < 1.1
    True
    """
    if find_least_p(n) > level:
        return None
    if n <= _MOST_SIMULATED:
        return _simulate_detectable(n, level, power)
    return _solve_effect(n, level, power)


@cache
def _simulate_detectable(n: int, level: float, power: float) -> float:
    """Return the effect by draws: for each the least one that is seen, of these a quantile."""
    noise = np.random.default_rng(_SEED).standard_normal((_DRAWS, n))
    low, high = np.zeros(_DRAWS), np.full(_DRAWS, _LARGEST_EFFECT)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_seen = compute_sign_flips(noise + middle[:, None]) <= level
        high = np.where(is_seen, middle, high)
        low = np.where(is_seen, low, middle)
    return float(np.quantile(high, power))


@cache
def _solve_effect(n: int, level: float, power: float) -> float:
    """Return the effect that the t test would see: with so many pairs the two agree."""
    from statsmodels.stats.power import TTestPower

    found = TTestPower().solve_power(nobs=n, alpha=level, power=power)
    return float(np.squeeze(found))


def count_pairs(effect: float, level: float, power: float = POWER) -> int | None:
    """Return how many pairs would see a mean difference.

    Parameters
    ----------
    effect : float
        The difference in deviations of the differences, above 0.
    level, power : float
        As in `find_detectable`.

    Returns
    -------
    int or None
        None where it would take more than a million, or no number reaches the level.

    Examples
    --------
    >>> count_pairs(1.0, 0.05)
    11
    """
    least = count_least_pairs(level)
    if least is None:
        return None
    for n in range(least, _MOST_SIMULATED + 1):
        detectable = find_detectable(n, level, power)
        if detectable is not None and detectable <= effect:
            return n
    first = max(least, _MOST_SIMULATED + 1)
    if _solve_effect(first, level, power) <= effect:
        return first
    return _solve_pairs(effect, level, power)


def _solve_pairs(effect: float, level: float, power: float) -> int | None:
    if _solve_effect(_MOST_PAIRS, level, power) > effect:
        return None
    from statsmodels.stats.power import TTestPower

    found = TTestPower().solve_power(effect_size=effect, alpha=level, power=power)
    return math.ceil(float(np.squeeze(found)))
