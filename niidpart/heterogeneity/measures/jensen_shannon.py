"""Jensen-Shannon divergence. Lin, IEEE Transactions on Information Theory 37 (1991), equation 4.1 with equal weights."""

import numpy as np

from ...arithmetic.exact import Floats
from . import bits, jackknifed, largest_means

__all__ = ["jensen_shannon"]

KIND = "distance"
VERSION = 1
POWER = 1


def jensen_shannon(p: Floats, q: Floats) -> Floats:
    """Jensen-Shannon divergence in bits: the entropy of the middle less the mean entropy; 0 to 1. Its root is a metric.

    p, q: distributions [..., K], broadcast against each other. Returns [...].
    """
    return np.maximum(bits((p + q) / 2) - (bits(p) + bits(q)) / 2, 0.0)


def _cell(p: Floats, q: Floats) -> Floats:
    value: Floats = (_p_log_p(p) + _p_log_p(q)) / 2 - _p_log_p((p + q) / 2)
    return value


bias = jackknifed(_cell)


def _p_log_p(p: Floats) -> Floats:
    value: Floats = np.log(np.where(p > 0, p, 1.0))
    value *= p / np.log(2)
    return value


def largest(g: Floats, w: Floats) -> tuple[float, float]:
    return largest_means(_to_mixture, g, w)


def _to_mixture(share: Floats) -> Floats:
    """1 - ((1 + s) log2(1 + s) - s log2 s) / 2."""
    s_log_s = share * np.log2(np.where(share > 0, share, 1.0))
    value: Floats = 1 - ((1 + share) * np.log2(1 + share) - s_log_s) / 2
    return value
