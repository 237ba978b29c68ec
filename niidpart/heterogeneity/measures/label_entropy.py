"""Entropy of the labels at a party. Shannon (1948)."""

from ...arithmetic.exact import Floats
from . import bits

__all__ = ["label_entropy"]

KIND = "labels"
VERSION = 1
POWER = 1


def label_entropy(p: Floats) -> Floats:
    """Entropy of a party's labels in bits: 0 for one class, log2 K for K equal ones. p: [..., K]; returns [...].

    Its mean over parties, weighted by size, is the entropy of the label once the party is known. Scaled, it is the mutual information of
    label and party over the largest possible one; corrected for chance, the adjusted mutual information of Vinh, Epps and Bailey, JMLR 11
    (2010), with the smaller entropy as the largest value.
    """
    return bits(p)


def scaled(mean: float, g: Floats, w: Floats) -> float:
    """(H(g) - mean) / min(H(g), H(w)): what the party tells about the label, over the most that it could tell."""
    whole, most = float(bits(g)), min(float(bits(g)), float(bits(w)))
    return (whole - mean) / most if most > 0 else 0.0
