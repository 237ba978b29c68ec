"""How much smaller the smallest party is than the largest."""

from ...arithmetic.rng import Ints

__all__ = ["quantity_ratio"]

KIND = "sizes"
VERSION = 1
POWER = 1


def quantity_ratio(sizes: Ints) -> float:
    """1 - smallest / largest size: 0 where all are equal, 0.9 where the largest holds ten times as much, 1 where a party holds nothing."""
    return 1 - float(sizes.min()) / float(sizes.max()) if sizes.max() else 0.0


def scaled(value: float, n_parties: int) -> float:
    return value if n_parties > 1 else 0.0


def of_even(n: int, n_parties: int) -> float:
    less = n // n_parties
    return 1 - less / (less + 1) if n % n_parties else 0.0
