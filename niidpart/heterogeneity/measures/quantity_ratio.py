"""How much smaller the smallest party is than the largest."""

from ...arithmetic.rng import Ints
from . import SizeMeasure

__all__ = ["quantity_ratio"]


def quantity_ratio(sizes: Ints) -> float:
    """Ratio of sizes: 1 - smallest / largest.

    0 where all are equal, 0.9 where the largest holds ten times as much, 1 where a party holds
    nothing.
    """
    largest = sizes.max()
    if not largest:
        return 0.0
    return 1 - float(sizes.min()) / float(largest)


def scale(value: float, n_parties: int) -> float:
    return value if n_parties > 1 else 0.0


def even(n: int, n_parties: int) -> float:
    """n mod P parties have one example more."""
    if n % n_parties == 0:
        return 0.0
    less = n // n_parties
    return 1 - less / (less + 1)


ENTRY = SizeMeasure(version=1, power=1, value=quantity_ratio, scale=scale, even=even)
