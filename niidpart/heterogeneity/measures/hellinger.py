"""Hellinger distance, squared. Hellinger, Journal fuer die reine und angewandte Mathematik 136 (1909)."""

import numpy as np

from ...arithmetic.exact import Floats
from . import jackknifed, largest_means

__all__ = ["hellinger"]

KIND = "distance"
VERSION = 1
POWER = 1


def hellinger(p: Floats, q: Floats) -> Floats:
    """Squared Hellinger distance: 1 - sum_k sqrt(p_k q_k); 0 to 1. The distance itself is its root.

    Squared, since that is convex: only so does the mean have a largest value to be scaled by.
    p, q: distributions [..., K], broadcast against each other. Returns [...].
    """
    alike: Floats = (np.sqrt(p) * np.sqrt(q)).sum(axis=-1)
    return np.maximum(1 - alike, 0.0)


def _cell(p: Floats, q: Floats) -> Floats:
    value: Floats = (p + q) / 2 - np.sqrt(p) * np.sqrt(q)
    return value


bias = jackknifed(_cell)


def largest(g: Floats, w: Floats) -> tuple[float, float]:
    return largest_means(lambda share: 1 - np.sqrt(share), g, w)
