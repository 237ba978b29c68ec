"""Earth mover's distance between distributions over ordered classes. Rubner, Tomasi, Guibas, IJCV 40 (2000)."""

import numpy as np

from ...arithmetic.exact import Floats

__all__ = ["emd"]

KIND = "distance"
VERSION = 1
POWER = 2  # chance moves it like a length: what it adds, it adds in squares


def emd(p: Floats, q: Floats) -> Floats:
    """Earth mover's distance with the ground metric |k - l| / (K - 1): for classes whose order means something (ages, grades); 0 to 1.

    For classes without an order all are equally far apart, and the earth mover's distance is the total variation.
    p, q: distributions [..., K], broadcast against each other. Returns [...].
    """
    total: Floats = np.abs(np.cumsum(p, axis=-1) - np.cumsum(q, axis=-1))[..., :-1].sum(axis=-1)
    total /= max(p.shape[-1] - 1, 1)
    return total


def largest(g: Floats, w: Floats) -> tuple[float, float]:
    """That of parties of one class each, by convexity: the mean distance of two examples, whoever holds them."""
    below = np.cumsum(g)[:-1]
    spread = (
        2 * float((below * (1 - below)).sum()) / max(len(g) - 1, 1)
    )  # sum_kl g_k g_l |k - l| / (K - 1)
    apart = 1 - float((w * w).sum())
    return (spread if len(w) > 1 else 0.0), (min(1.0, spread / apart) if apart > 0 else 0.0)
