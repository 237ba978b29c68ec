"""Coefficient of variation of the sizes of the parties."""

import numpy as np

from ...arithmetic.rng import Ints

__all__ = ["quantity_cv"]

KIND = "sizes"
VERSION = 1
POWER = 1


def quantity_cv(sizes: Ints) -> float:
    """Coefficient of variation: standard deviation (of these parties, not of a sample) over mean; 0 to sqrt(P - 1), where one party holds all."""
    mean = float(sizes.mean())
    return float(np.sqrt(((sizes - mean) ** 2).mean())) / mean if mean else 0.0


def scaled(value: float, n_parties: int) -> float:
    return value / float(np.sqrt(n_parties - 1)) if n_parties > 1 else 0.0


def of_even(n: int, n_parties: int) -> float:
    share = n % n_parties / n_parties
    return float(np.sqrt(share * (1 - share))) * n_parties / n
