"""Measures of skew: one file a measure, named after it; the folder is the registry.

A file has a function of its own name that is easy to check by hand, `KIND`, `VERSION` (raised when its numbers change) and what brings
the number to the scale on which an IID split is 0 and parties of one class each are 1. With g [K] the classes of all parties together
and w [P] the parties' shares of the examples:

POWER says how chance adds to it (`corrected` in measure.py): 1 as such, 2 in squares.

- KIND "distance": f(p, q) -> [...] between distributions [..., K]; `largest(g, w)` -> the largest possible mean of f(p_i, g) over
  parties weighted by w, and of f(p_i, p_j) over pairs weighted by w_i w_j. It may have `bias(p, q, n, m)`, what is taken off first where
  p is of n examples and q of m (None: of endlessly many).
- KIND "labels": f(p) -> [...] of one distribution; `scaled(mean, g, w)` of its mean over parties weighted by w.
- KIND "sizes": f(sizes [P]) -> float; `scaled(value, n_parties)`; `of_even(n, n_parties)`, its value where n examples are dealt evenly.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...arithmetic.exact import Floats
from ...arithmetic.rng import Ints
from ...registry import Registry

MEASURES = Registry("niidpart.heterogeneity.measures", "measure")


def bits(p: NDArray[np.floating]) -> Floats:
    """[...] entropy in bits of distributions [..., K]; 0 log 0 = 0."""
    logs: Floats = np.log(np.where(p > 0, p, 1.0))
    logs *= p
    total: Floats = logs.sum(axis=-1)
    total *= -1 / np.log(2)
    return total


def jackknife(cell: Callable[[Floats, Floats], Floats], p: Floats, q: Floats, n: Ints) -> Floats:
    """[...] how much too large sum_k cell(p_k, q_k) is expected to be, where p is of n [...] examples: the jackknife's estimate.

    (n - 1) times the mean over examples of what leaving that one out adds (Quenouille, Biometrika 43 (1956)). 0 for one example.
    """
    more = (n / np.maximum(n - 1, 1))[
        ..., None
    ]  # an example out of class k: all shares grow by this, that of k loses 1 / (n - 1)
    others, its_class = cell(p * more, q), cell(np.maximum(p - 1 / n[..., None], 0.0) * more, q)
    without = others.sum(axis=-1) + (p * (its_class - others)).sum(axis=-1)
    total: Floats = np.where(n > 1, (n - 1) * (without - cell(p, q).sum(axis=-1)), 0.0)
    return total


def jackknifed(
    cell: Callable[[Floats, Floats], Floats],
) -> Callable[[Floats, Floats, Ints, Ints | None], Floats]:
    """`bias` of a distance sum_k cell(p_k, q_k), to which rare classes add more than an IID deal shows: the jackknife's, of both sides."""

    def bias(p: Floats, q: Floats, n: Ints, m: Ints | None) -> Floats:
        of_p = jackknife(cell, p, q, n)
        return of_p if m is None else of_p + jackknife(cell, q, p, m)

    return bias


def largest_means(
    to_mixture: Callable[[Floats], Floats], g: Floats, w: Floats
) -> tuple[float, float]:
    """The largest mean to the whole and over pairs of a distance that is jointly convex and 1 between distributions without a common class.

    to_mixture(s): the distance from a distribution to a mixture that holds it with share s beside what it has no class in common with.
    By convexity in the parties the mean to the whole is at most that of parties of one class each, sum_k g_k to_mixture(g_k). The whole
    holds party i with share w_i, so it is at most sum_i w_i to_mixture(w_i) too: parties without a common class. Pairs: 1 between
    different classes, so at most the share of pairs that differ.
    """
    apart = 1 - float((w * w).sum())
    pairs = min(1.0, (1 - float((g * g).sum())) / apart) if apart > 0 else 0.0
    return min(float((g * to_mixture(g)).sum()), float((w * to_mixture(w)).sum())), pairs
