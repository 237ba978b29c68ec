"""Classes of a number that is to be predicted, by quantiles that are declared."""

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated

import numpy as np

from ..arithmetic.rng import Ints
from ..arithmetic.words import Array
from ..errors import UsageError
from .lists import split_list

__all__ = ["Quantiles", "number_by_quantiles"]

Quantiles = Annotated[
    str, "Shares of all rows (0.25,0.5,0.75) at which the target is cut into classes."
]


def number_by_quantiles(target: Array, quantiles: str, what: str) -> tuple[Ints, list[str]]:
    """Return classes of a target, and a name for each.

    A cut is a value of the target: the one with this share of the rows below it, rounded down. A
    row of that value is above the cut, so that equal values are of one class.

    Parameters
    ----------
    target : array of float [N]
        Finite.
    quantiles : str
        Shares between 0 and 1, ascending, with commas between them.
    what : str
        What the target is, for names and errors.

    Returns
    -------
    ids : array of int64 [N]
    names : list of str [K]

    Raises
    ------
    UsageError
        For shares that are none, and for cuts that leave a class without rows.

    Examples
    --------
    >>> ids, names = number_by_quantiles(np.array([3.0, 1.0, 2.0, 9.0]), "0.5", "score")
    >>> ids.tolist(), names
    ([1, 0, 0, 1], ['score < 3', 'score >= 3'])
    """
    ascending = np.sort(target)
    shares = _parse_shares(quantiles)
    places = [int(share * len(target)) for share in shares]
    cuts = [float(ascending[place]) for place in places]
    ids = np.searchsorted(np.array(cuts), target, side="right").astype(np.int64)
    empty = np.flatnonzero(np.bincount(ids, minlength=len(cuts) + 1) == 0)
    if len(empty):
        got = f"quantiles {quantiles} cut the {what} at {', '.join(map(_spell, cuts))}"
        raise UsageError(f"{got}, which leaves a class without rows; take other shares or fewer")
    return ids, _name_classes(cuts, what)


def _parse_shares(quantiles: str) -> Sequence[Fraction]:
    """Return the shares exactly: 0.1 of 70 is 7, which 70 * 0.1 only comes near."""
    try:
        shares = [Fraction(text) for text in split_list(quantiles)]
    except (ValueError, ZeroDivisionError) as error:
        raise _build_wrong_shares(quantiles) from error
    is_ascending = shares == sorted(set(shares))
    if not shares or not is_ascending or shares[0] <= 0 or shares[-1] >= 1:
        raise _build_wrong_shares(quantiles)
    return shares


def _build_wrong_shares(quantiles: str) -> UsageError:
    needed = "ascending shares between 0 and 1 are needed, such as 0.5 or 0.25,0.5,0.75"
    return UsageError(f"quantiles is {quantiles[:80]!r}; {needed}")


def _name_classes(cuts: Sequence[float], what: str) -> list[str]:
    """Return a name for each class, from the lowest on."""
    written = [_spell(cut) for cut in cuts]
    between = [f"{low} <= {what} < {high}" for low, high in itertools.pairwise(written)]
    return [f"{what} < {written[0]}", *between, f"{what} >= {written[-1]}"]


def _spell(cut: float) -> str:
    return repr(cut).removesuffix(".0")
