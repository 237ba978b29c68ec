"""Hellinger distance, squared. Hellinger, J. reine angew. Math. 136 (1909)."""

import numpy as np

from ...arithmetic.exact import Floats
from . import DistanceMeasure, add_classes, bound_means, make_jackknife_bias

__all__ = ["hellinger"]


def hellinger(p: Floats, q: Floats) -> Floats:
    """Squared Hellinger distance: 1 - sum_k sqrt(p_k q_k); 0 to 1. The distance itself is its root.

    Squared, since that is convex: only so does the mean have a largest value to be scaled by.
    p, q: distributions [..., K], broadcast against each other. Returns [...].
    """
    affinity = add_classes(np.sqrt(p) * np.sqrt(q))
    return np.maximum(1 - affinity, 0.0)


def _cell(p: Floats, q: Floats) -> Floats:
    """One class's part of the distance, but for (p + q) / 2, of which the jackknife is 0."""
    value: Floats = -np.sqrt(p * q)
    return value


def largest(g: Floats, w: Floats) -> tuple[Floats, Floats]:
    return bound_means(lambda share: 1 - np.sqrt(share), g, w)


ENTRY = DistanceMeasure(
    version=4, power=1, value=hellinger, largest=largest, bias=make_jackknife_bias(_cell)
)
