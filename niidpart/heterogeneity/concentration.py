"""The Dirichlet concentration that explains a party's class counts best: the MAP estimate of beta.

Cha and Chang, Information 16 (2025) 861, section 3.2, with the signs as they must be;
docs/heterogeneity.md has equations and reference values.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.exact import Floats
from ..errors import UsageError
from .likelihoods import (
    BetaLikelihood,
    collect_pooled_terms,
    collect_row_terms,
    slope_of_all,
    slope_of_rows,
)
from .roots import HIGHEST, LOWEST, find_roots
from .tables import require_counts

__all__ = ["HIGHEST", "LOWEST", "VERSION", "map_beta", "map_beta_overall"]

VERSION = 1
_CELLS = 1 << 20  # of the table, looked at together: bounds the memory
_LEAST_GUESS = 1e-3  # for rows of one class, where the formula gives 0; Newton goes on from there


def map_beta(
    counts: NDArray[Any], *, likelihood: BetaLikelihood = "multinomial", kappa: float = 1
) -> Floats:
    """Return the beta that has the highest posterior density for each party.

    Parameters
    ----------
    counts : array of int, [P, K]
        Examples of class k at party p.
    likelihood : {"multinomial", "proportions"}
        "multinomial" is the Dirichlet-multinomial of the counts; "proportions" the Dirichlet
        density of the smoothed proportions (q + 1) / (n + K).
    kappa : float
        The power of the prior Gamma(1/2, 1); the paper's text has K.

    Returns
    -------
    array of float64, [P]
        Within 1e-6 to 1e6. A party without examples gets 1e-6: its posterior is the prior, whose
        mode is 0. So does, with "multinomial", a party that holds one class.

    Raises
    ------
    UsageError
        For anything but a table of counts.

    Examples
    --------
    >>> import numpy as np
    >>> from niidpart.heterogeneity import map_beta
    >>> map_beta(np.array([[100, 100], [190, 10], [200, 0]])).round(4)
    array([0.2726, 0.1335, 0.    ])
    """
    counts = require_counts(counts)
    _check_options(likelihood, kappa)
    beta = np.full(len(counts), LOWEST)
    step = max(1, _CELLS // counts.shape[1])
    for start in range(0, len(counts), step):
        block = counts[start : start + step]
        held = np.flatnonzero(block.sum(axis=1))
        if not held.size:
            continue
        q = block[held]
        terms = collect_row_terms(q, likelihood)
        slope = partial(slope_of_rows, terms=terms, likelihood=likelihood, kappa=kappa)
        beta[start + held] = find_roots(slope, _guess(q))
    return beta


def map_beta_overall(
    counts: NDArray[Any], *, likelihood: BetaLikelihood = "multinomial", kappa: float = 1
) -> float:
    """Return the beta that has the highest posterior density for all parties together.

    Their likelihoods are multiplied, with one prior. Parties without examples say nothing.

    Parameters
    ----------
    counts : array of int, [P, K]
        Examples of class k at party p.
    likelihood, kappa
        As in `map_beta`.

    Returns
    -------
    float
        Within 1e-6 to 1e6; 1e-6 where no party has any example.

    Raises
    ------
    UsageError
        For anything but a table of counts.

    Examples
    --------
    >>> import numpy as np
    >>> from niidpart.heterogeneity import map_beta_overall
    >>> round(map_beta_overall(np.array([[100, 100], [190, 10]])), 4)
    0.3623
    """
    counts = require_counts(counts)
    _check_options(likelihood, kappa)
    step = max(1, _CELLS // counts.shape[1])
    terms = collect_pooled_terms(counts, step)
    if not terms.sizes.size:
        return LOWEST
    slope = partial(slope_of_all, terms=terms, likelihood=likelihood, kappa=kappa)
    return float(find_roots(slope, np.array([1.0]))[0])


def _check_options(likelihood: str, kappa: float) -> None:
    if likelihood not in ("multinomial", "proportions"):
        raise UsageError(f"likelihood is {likelihood!r}; it must be multinomial or proportions")
    if not 0 < kappa < np.inf:
        advice = "the power of the prior must be above 0, 1 for the prior itself"
        raise UsageError(f"kappa is {kappa}; {advice}")


def _guess(counts: NDArray[Any]) -> Floats:
    """Return [R] betas to begin with, at most K.

    Of two examples of a party drawn from Dir(beta), the share of pairs of one class is expected to
    be (beta + 1) / (K beta + 1): the beta for which that is the share in the row.
    """
    K = counts.shape[1]
    q = counts.astype(np.float64)
    n = q.sum(axis=1)
    n_pairs = np.maximum(n * (n - 1), 1)
    n_equal = (q * (q - 1)).sum(axis=1)
    share = n_equal / n_pairs
    # A row that is more even than chance would make it has K share - 1 below 0: it gets K.
    beyond_even = np.maximum(K * share - 1, 1 / K)
    start: Floats = np.clip((1 - share) / beyond_even, _LEAST_GUESS, K)
    return start
