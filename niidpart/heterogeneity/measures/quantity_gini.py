"""Gini coefficient of the sizes of the parties. Gini (1912)."""

import numpy as np

from ...arithmetic.rng import Ints
from . import SizeMeasure

__all__ = ["quantity_gini"]


def quantity_gini(sizes: Ints) -> float:
    """Gini coefficient of the sizes: the mean difference of two sizes over twice the mean size.

    0 to (P - 1) / P, where one party holds all.
    """
    P, total = len(sizes), int(sizes.sum())
    if not total:
        return 0.0
    # Sorted, size p is the larger one in p - 1 pairs and the smaller one in P - p.
    times = 2 * np.arange(1, P + 1) - P - 1
    return float((times * np.sort(sizes)).sum() / (P * total))


def scale(value: float, n_parties: int) -> float:
    if n_parties == 1:
        return 0.0
    return value * n_parties / (n_parties - 1)


def even(n: int, n_parties: int) -> float:
    """n mod P parties have one example more."""
    more = n % n_parties
    return more * (n_parties - more) / (n_parties * n)


ENTRY = SizeMeasure(version=1, power=1, value=quantity_gini, scale=scale, even=even)
