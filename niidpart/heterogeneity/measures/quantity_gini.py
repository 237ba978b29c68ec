"""Gini coefficient of the sizes of the parties. Gini (1912)."""

import numpy as np

from ...arithmetic.rng import Ints

__all__ = ["quantity_gini"]

KIND = "sizes"
VERSION = 1
POWER = 1


def quantity_gini(sizes: Ints) -> float:
    """Gini coefficient: the mean difference of two sizes over twice the mean size; 0 to (P - 1) / P, where one party holds all."""
    n, total = len(sizes), int(sizes.sum())
    rank = 2 * np.arange(1, n + 1) - n - 1
    return float((rank * np.sort(sizes)).sum() / (n * total)) if total else 0.0


def scaled(value: float, n_parties: int) -> float:
    return value * n_parties / (n_parties - 1) if n_parties > 1 else 0.0


def of_even(n: int, n_parties: int) -> float:
    """n mod P parties have one example more."""
    more = n % n_parties
    return more * (n_parties - more) / (n_parties * n)
