"""Total variation distance."""

import numpy as np

from ...arithmetic.exact import Floats
from . import DistanceMeasure, add_classes, bound_means

__all__ = ["total_variation"]


def total_variation(p: Floats, q: Floats) -> Floats:
    """Total variation: half the sum of |p_k - q_k|, the share that would have to change its class.

    0 to 1. It is the earth mover's distance where all classes are equally far apart, and half of
    what Zhao et al., arXiv 1806.00582 (2018), call EMD.
    p, q: distributions [..., K], broadcast against each other. Returns [...].
    """
    return add_classes(np.abs(p - q)) / 2


def largest(g: Floats, w: Floats) -> tuple[Floats, Floats]:
    return bound_means(lambda share: 1 - share, g, w)


# power 2: chance moves it like a length, so what chance adds, it adds in squares
ENTRY = DistanceMeasure(version=5, power=2, value=total_variation, largest=largest, bias=None)
