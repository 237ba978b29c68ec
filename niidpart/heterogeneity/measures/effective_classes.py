"""Effective number of classes at a party. Hill, Ecology 54 (1973), order 1; its mean as in Jost, Ecology 88 (2007)."""

import numpy as np

from ...arithmetic.exact import Floats
from . import bits

__all__ = ["effective_classes"]

KIND = "labels"
VERSION = 1
POWER = 1


def effective_classes(p: Floats) -> Floats:
    """log2 of the effective number of classes: as many equal classes would have the entropy of p. p: [..., K]; returns [...].

    The mean over parties is taken of the logarithms, so that the parties never have more classes on average than the whole.
    """
    return bits(p)


def shown(mean: float) -> float:
    """The number of classes of a mean logarithm."""
    return float(np.exp2(mean))


def scaled(mean: float, g: Floats, w: Floats) -> float:
    """(D - d) / (D - least): D classes in the whole, d at a party, least = 1 (or more, where the parties are too few to hold one class each)."""
    whole = float(bits(g))
    least = whole - min(whole, float(bits(w)))
    room = float(np.exp2(whole) - np.exp2(least))
    return float(np.exp2(whole) - np.exp2(mean)) / room if room > 0 else 0.0
