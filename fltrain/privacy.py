"""How much rounds of noisy means give away of a party: epsilon, by the accountant of dp-accounting.

The library is an extra, imported when a run begins that says epsilon.
"""

import functools
import importlib
from collections.abc import Mapping
from types import ModuleType

import numpy as np

from niidpart.arithmetic.exact import Floats
from niidpart.errors import UsageError
from niidpart.extras import advise_on_missing

__all__ = ["compute_epsilon"]

_ACCOUNTANT = "dp_accounting"
_DIGITS = 6  # so that another version of the library, whose last bits differ, says the same


def compute_epsilon(
    cohorts: Mapping[int, int],
    n_parties: int,
    noise_multiplier: float,
    delta: float,
) -> float:
    """Return epsilon after rounds whose noisy sums of updates were seen by everybody.

    Cohorts are drawn uniformly without replacement. Two sets of parties are neighbours where one
    party is another one, so that a sum differs by two bounds, and not by one. The accountant is
    that of Rényi differential privacy, with the bound of Wang, Balle and Kasiviswanathan (AISTATS
    2019) for such cohorts.

    Parameters
    ----------
    cohorts : mapping of int to int
        How many rounds had a cohort of that size; {} before the first, when epsilon is 0.
    n_parties : int
        Of whom they were drawn.
    noise_multiplier : float
        Standard deviation of the noise in a sum, in bounds on a party's update; above 0.
    delta : float
        Chance that the guarantee fails, between 0 and 1.

    Returns
    -------
    float
        Of six digits.

    Raises
    ------
    ModuleNotFoundError
        Where the accountant is not installed.
    UsageError
        For a noise or a delta that has no epsilon.

    Examples
    --------
    >>> compute_epsilon({10: 50}, n_parties=100, noise_multiplier=4.0, delta=1e-5)
    3.6803
    """
    if noise_multiplier <= 0 or not 0 < delta < 1:
        raise UsageError(
            f"noise_multiplier is {noise_multiplier} and delta {delta}; epsilon is finite where "
            "the first is above 0 and the second between 0 and 1"
        )
    library = _import_accountant()  # before the first round too: that it is missing is said then
    if not cohorts:
        return 0.0
    spent, orders = np.zeros(()), np.zeros(0)
    for size, rounds in cohorts.items():
        orders, of_one = _account_round(n_parties, size, noise_multiplier)
        spent = spent + rounds * of_one
    epsilon, _ = library.rdp.compute_epsilon(orders, spent, delta)
    return float(f"{epsilon:.{_DIGITS}g}")


@functools.cache
def _account_round(n_parties: int, size: int, noise_multiplier: float) -> tuple[Floats, Floats]:
    """Return the orders of Rényi's divergence, and what one round with such a cohort spends.

    It is kept, since each evaluated round asks for it and it takes a tenth of a second.
    """
    library = _import_accountant()
    replace_one = library.NeighboringRelation.REPLACE_ONE
    accountant = library.rdp.RdpAccountant(neighboring_relation=replace_one)
    # the noise is counted in sensitivities, and one party for another moves a sum by two bounds
    noise = library.GaussianDpEvent(noise_multiplier / 2)
    accountant.compose(library.SampledWithoutReplacementDpEvent(n_parties, size, noise))
    return np.array(accountant.orders), np.array(accountant.rdp)


def _import_accountant() -> ModuleType:
    try:
        return importlib.import_module(_ACCOUNTANT)
    except ModuleNotFoundError as error:
        if error.name != _ACCOUNTANT:
            raise
        what = f"epsilon is computed by dp-accounting: {advise_on_missing(_ACCOUNTANT)}"
        raise ModuleNotFoundError(what, name=_ACCOUNTANT) from error
