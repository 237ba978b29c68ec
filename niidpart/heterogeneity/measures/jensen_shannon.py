"""Jensen-Shannon divergence. Lin, IEEE Trans. Information Theory 37 (1991), equation 4.1."""

import numpy as np

from ...arithmetic.exact import Floats
from . import DistanceMeasure, bound_means, entropy_in_bits, make_jackknife_bias

__all__ = ["jensen_shannon"]

_NOTHING = 1e-300  # 0 log 0 = 0


def jensen_shannon(p: Floats, q: Floats) -> Floats:
    """Jensen-Shannon divergence in bits: the entropy of the middle less the mean entropy; 0 to 1.

    With equal weights. Its root is a metric.
    p, q: distributions [..., K], broadcast against each other. Returns [...].
    """
    of_middle = entropy_in_bits((p + q) / 2)
    mean = (entropy_in_bits(p) + entropy_in_bits(q)) / 2
    return np.maximum(of_middle - mean, 0.0)


def _cell(p: Floats, q: Floats) -> Floats:
    """One class's part of the divergence, but for q log(q) / 2, of which the jackknife is 0."""
    both = p + q
    # p log(p) / 2 - m log(m) with m = (p + q) / 2
    of_middle = both * np.log(both / 2 + _NOTHING)
    value: Floats = p * np.log(p + _NOTHING) - of_middle
    value *= 1 / (2 * np.log(2))
    return value


def largest(g: Floats, w: Floats) -> tuple[Floats, Floats]:
    return bound_means(_to_mixture, g, w)


def _to_mixture(share: Floats) -> Floats:
    """Return 1 - ((1 + s) log2(1 + s) - s log2 s) / 2."""
    s_log_s = share * np.log2(np.where(share > 0, share, 1.0))  # 0 log 0 = 0
    grown = 1 + share
    value: Floats = 1 - (grown * np.log2(grown) - s_log_s) / 2
    return value


ENTRY = DistanceMeasure(
    version=4, power=1, value=jensen_shannon, largest=largest, bias=make_jackknife_bias(_cell)
)
