"""Coefficient of variation of the sizes of the parties."""

import numpy as np

from ...arithmetic.rng import Ints
from . import SizeMeasure

__all__ = ["quantity_cv"]


def quantity_cv(sizes: Ints) -> float:
    """Coefficient of variation of the sizes: standard deviation over mean.

    The deviation is of these parties, not of a sample. 0 to sqrt(P - 1), where one party holds all.
    """
    mean = float(sizes.mean())
    if not mean:
        return 0.0
    variance = ((sizes - mean) ** 2).mean()
    return float(np.sqrt(variance)) / mean


def scale(value: float, n_parties: int) -> float:
    if n_parties == 1:
        return 0.0
    return value / float(np.sqrt(n_parties - 1))


def even(n: int, n_parties: int) -> float:
    """n mod P parties have one example more."""
    share = n % n_parties / n_parties
    return float(np.sqrt(share * (1 - share))) * n_parties / n


ENTRY = SizeMeasure(version=1, power=1, value=quantity_cv, scale=scale, even=even)
