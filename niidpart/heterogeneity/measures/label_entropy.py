"""Entropy of the labels at a party. Shannon (1948)."""

import numpy as np

from ...arithmetic.exact import Floats
from . import LabelMeasure, divide_or_zero, entropy_in_bits

__all__ = ["label_entropy"]


def label_entropy(p: Floats) -> Floats:
    """Entropy of a party's labels in bits: 0 for one class, log2 K for K equal ones.

    Its mean over parties, weighted by size, is the entropy of the label once the party is known.
    Scaled, it is the mutual information of label and party over the largest possible one.
    Corrected for chance, it is the adjusted mutual information of Vinh, Epps and Bailey, JMLR 11
    (2010), with the smaller entropy as the largest value. p: [..., K]; returns [...].
    """
    return entropy_in_bits(p)


def scale(mean: Floats, g: Floats, w: Floats) -> Floats:
    """Return (H(g) - mean) / min(H(g), H(w)).

    It is what the party tells about the label, over the most that it could tell.
    """
    of_label = entropy_in_bits(g)
    most = np.minimum(of_label, entropy_in_bits(w))
    return divide_or_zero(of_label - mean, most)


ENTRY = LabelMeasure(version=5, power=1, value=label_entropy, scale=scale, show=None)
