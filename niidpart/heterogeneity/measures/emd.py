"""Earth mover's distance of ordered classes. Rubner, Tomasi, Guibas, IJCV 40 (2000)."""

import numpy as np

from ...arithmetic.exact import Floats
from . import DistanceMeasure, add_classes, divide_or_zero

__all__ = ["emd"]

_FEW = 64  # classes up to which one is added after the other


def emd(p: Floats, q: Floats) -> Floats:
    """Earth mover's distance with the ground metric |k - l| / (K - 1); 0 to 1.

    For classes whose order means something (ages, grades). For classes without an order all are
    equally far apart, and the earth mover's distance is the total variation.
    p, q: distributions [..., K], broadcast against each other. Returns [...].
    """
    # In one dimension all that lies on the wrong side of each boundary has to cross it.
    crossing = np.abs(_cumulate(p - q))
    total: Floats = add_classes(crossing)
    total /= max(p.shape[-1] - 1, 1)
    return total


def _cumulate(values: Floats) -> Floats:
    """Return [..., K - 1] the sums over the first classes of values [..., K], but for that of all.

    Numpy takes long over many short rows.
    """
    K = values.shape[-1]
    if K > _FEW:
        whole: Floats = np.cumsum(values[..., :-1], axis=-1)
        return whole
    total = values[..., :-1].copy()
    for k in range(1, K - 1):
        total[..., k] += total[..., k - 1]
    return total


def largest(g: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Return the means of parties of one class each, which are the largest by convexity.

    They are the mean distance of two examples, whoever holds them: over all pairs of examples, and
    over those of different parties.
    """
    below = np.cumsum(g, axis=-1)[..., :-1]
    # sum_kl g_k g_l |k - l| / (K - 1)
    of_two_examples = 2 * (below * (1 - below)).sum(axis=-1) / max(g.shape[-1] - 1, 1)
    nothing = np.zeros_like(of_two_examples)
    to_whole = of_two_examples if w.shape[-1] > 1 else nothing
    different_parties = 1 - (w * w).sum(axis=-1)
    over_pairs = np.minimum(1.0, divide_or_zero(of_two_examples, different_parties))
    return to_whole, over_pairs


# power 2: chance moves it like a length, so what chance adds, it adds in squares
ENTRY = DistanceMeasure(version=5, power=2, value=emd, largest=largest, bias=None)
