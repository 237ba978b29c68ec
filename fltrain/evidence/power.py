"""What a design of n pairs could have seen, and how many pairs would see a wanted difference.

The very test is carried out on drawn differences, whose least visible mean is looked for: a formula
for t knows nothing of how few signs there are.
"""

import math
from collections.abc import Callable
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from niidpart.arithmetic.exact import Floats

from .sign_flip import compute_sign_flips, count_least_pairs, find_least_p
from .sign_tails import approximate_sign_flips

__all__ = ["POWER", "count_pairs", "find_detectable"]

POWER = 0.8
_MANY_DRAWS, _DRAWS = 4_000, 2_000
_CHEAP = 12  # pairs whose signs are tried in no time
_MOST_EXACT = 18  # pairs whose signs are counted while draws are judged; of more pairs approximated
_FEWEST_SIGNS = 100  # choices of signs within the level, below which they are counted in any case
_HALVINGS = 10
_STEP = 1.25  # by which a difference, or a number of pairs, grows that shows too little
_MOST_DRAWN = 400  # pairs; beyond them the test sees what the t test sees
_MOST_PAIRS = 1_000_000
_SEED = 0

_Sight = Callable[[int], bool]  # whether so many pairs show a difference


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
        In deviations of the differences; None where n pairs cannot reach the level.

    Examples
    --------
    >>> find_detectable(5, 0.05) is None
    True
    >>> 1.0 < find_detectable(10, 0.05) < 1.1
    True
    """
    if find_least_p(n) > level:
        return None
    if n > _MOST_DRAWN:
        return _solve_effect(n, level, power)
    return _simulate_detectable(n, level, power)


@cache
def _simulate_detectable(n: int, level: float, power: float) -> float:
    """Return the effect that a share `power` of drawn cases shows.

    Who shows a difference shows each larger one, so that cases which are decided are left out.
    """
    cases = _draw_cases(n)
    wanted = math.ceil(power * len(cases))  # of `cases`, less those that show `low` already
    low = 0.0
    high = _guess_effect(n, level, power)
    is_seen = _list_seen(cases + high, level)
    n_seen = int(np.count_nonzero(is_seen))
    while n_seen < wanted:
        wanted -= n_seen
        cases = cases[~is_seen]
        low = high
        high *= _STEP
        is_seen = _list_seen(cases + high, level)
        n_seen = int(np.count_nonzero(is_seen))
    cases = cases[is_seen]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_seen = _list_seen(cases + middle, level)
        n_seen = int(np.count_nonzero(is_seen))
        if n_seen >= wanted:
            high = middle
            cases = cases[is_seen]
        else:
            low = middle
            wanted -= n_seen
            cases = cases[~is_seen]
    return high


def _draw_cases(n: int) -> Floats:
    """Return normal differences, [cases, n]: the same ones whenever they are asked for."""
    n_draws = _MANY_DRAWS if n <= _CHEAP else _DRAWS
    rng = np.random.default_rng(_SEED)
    return rng.standard_normal((n_draws, n))


def _list_seen(differences: Floats, level: float) -> NDArray[np.bool_]:
    """Return [cases] whether p of differences [cases, n] is at most the level."""
    n = differences.shape[1]
    is_coarse = level < _FEWEST_SIGNS * find_least_p(n)
    if n <= _MOST_EXACT or is_coarse:
        p = compute_sign_flips(differences)
    else:
        p = approximate_sign_flips(differences)
    return p <= level


def _guess_effect(n: int, level: float, power: float) -> float:
    """Return about what a t test would see, to begin with."""
    freedom = max(n - 1, 1)
    tail = level / 2
    t_level = stats.t.ppf(1 - tail, freedom)
    z_power = stats.norm.ppf(power)
    reach = t_level + z_power
    error = 1 / math.sqrt(n)
    return float(reach * error)


@cache
def _solve_effect(n: int, level: float, power: float) -> float:
    """Return the effect that the t test would see."""
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
        None where it would take more than a million.

    Examples
    --------
    >>> count_pairs(1.0, 0.05)
    11
    """
    z_level = float(stats.norm.ppf(1 - level / 2))
    z_power = float(stats.norm.ppf(power))
    reach = z_level + z_power
    least = (reach / effect) ** 2  # of normal differences whose deviation is known
    if least > _MOST_PAIRS:
        return None
    fewest = count_least_pairs(level)
    more = z_level**2 / 2  # about, since the deviation is not known
    guess = max(fewest, math.ceil(least + more))
    see = partial(_is_visible, effect=effect, level=level, power=power)
    if see(guess):
        return _count_down(see, guess, fewest)
    return _count_up(see, guess)


def _count_up(see: _Sight, too_few: int) -> int:
    """Return the least number of pairs above some that show a difference."""
    step = 1
    while not see(too_few + step):
        too_few += step
        step *= 2
    return _bisect_pairs(see, too_few, too_few + step)


def _count_down(see: _Sight, enough: int, fewest: int) -> int:
    """Return the least number of pairs, of some that are enough and fewer ones."""
    step = 1
    while enough - step >= fewest and see(enough - step):
        enough -= step
        step *= 2
    too_few = max(enough - step, fewest - 1)
    return _bisect_pairs(see, too_few, enough)


def _bisect_pairs(see: _Sight, too_few: int, enough: int) -> int:
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if see(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def _is_visible(n: int, effect: float, level: float, power: float) -> bool:
    """Return whether a share `power` of the cases that `find_detectable` draws shows an effect."""
    if find_least_p(n) > level:
        return False
    if n > _MOST_DRAWN:
        return _solve_effect(n, level, power) <= effect
    cases = _draw_cases(n)
    n_cases = len(cases)
    wanted = math.ceil(power * n_cases)
    is_seen = _list_seen(cases + effect, level)
    n_seen = np.count_nonzero(is_seen)
    return bool(n_seen >= wanted)
