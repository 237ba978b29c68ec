"""Effective number of classes. Hill, Ecology 54 (1973), order 1; its mean as in Jost (2007)."""

import numpy as np

from ...arithmetic.exact import Floats
from . import LabelMeasure, divide_or_zero, entropy_in_bits

__all__ = ["effective_classes"]


def effective_classes(p: Floats) -> Floats:
    """log2 of the effective number of classes: as many equal classes would have the entropy of p.

    The mean over parties is taken of the logarithms (Jost, Ecology 88 (2007)), so that the parties
    never have more classes on average than the whole. p: [..., K]; returns [...].
    """
    return entropy_in_bits(p)


def show_classes(mean: float) -> float:
    """Return the number of classes of a mean logarithm."""
    return float(np.exp2(mean))


def scale(mean: Floats, g: Floats, w: Floats) -> Floats:
    """Return (D - d) / (D - least), with D classes in the whole and d at a party.

    least is 1, or more where the parties are too few to hold one class each.
    """
    whole = entropy_in_bits(g)
    least = whole - np.minimum(whole, entropy_in_bits(w))
    room = np.exp2(whole) - np.exp2(least)
    return divide_or_zero(np.exp2(whole) - np.exp2(mean), room)


ENTRY = LabelMeasure(version=5, power=1, value=effective_classes, scale=scale, show=show_classes)
