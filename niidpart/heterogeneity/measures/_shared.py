"""What several measures need: entropy, the jackknife, and bounds on means of convex distances."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...arithmetic.exact import Floats
from ...arithmetic.rng import Ints
from ._records import Bias, Distance

_NOTHING = 1e-300  # added to a share changes none but 0, whose logarithm is finite then


def entropy_in_bits(p: NDArray[np.floating]) -> Floats:
    """Return the entropy of distributions over the classes, in bits.

    Parameters
    ----------
    p : array of float [..., K]
        0 log 0 counts as 0.

    Returns
    -------
    array of float64 [...]

    Examples
    --------
    >>> entropy_in_bits(np.array([[0.5, 0.5], [0.25, 0.75]])).round(3).tolist()
    [1.0, 0.811]
    """
    logs: Floats = np.log(p + _NOTHING)
    logs *= p
    total: Floats = add_classes(logs)
    total *= -1 / np.log(2)
    return total


def add_classes(values: Floats) -> Floats:
    """Return [...] the sums over the classes of values [..., K].

    Where classes are few, this is several times faster than `numpy.sum`, which is made for long
    rows.

    Parameters
    ----------
    values : array of float, [..., K]

    Returns
    -------
    array of float, [...]

    Examples
    --------
    >>> add_classes(np.array([[0.5, 1.0], [0.0, 2.0]])).tolist()
    [1.5, 2.0]
    """
    total: Floats = np.einsum("...k->...", values)
    return total


def divide_or_zero(value: Floats, room: Floats) -> Floats:
    """Return value / room, 0 where there is no room for anything to differ.

    Parameters
    ----------
    value, room : array of float
        Of shapes that are broadcast against each other.

    Returns
    -------
    array of float

    Examples
    --------
    >>> divide_or_zero(np.array([1.0, 1.0]), np.array([2.0, 0.0])).tolist()
    [0.5, 0.0]
    """
    has_room = room > 0
    scaled: Floats = np.where(has_room, value / np.where(has_room, room, 1.0), 0.0)
    return scaled


def jackknife(cell: Distance, p: Floats, q: Floats, n: Ints) -> Floats:
    """Return how much too large sum_k cell(p_k, q_k) is expected to be, where p is of n examples.

    It is the jackknife's estimate (Quenouille, Biometrika 43 (1956)): n - 1 times the mean, over
    the examples, of what leaving that one out adds. 0 for one example. n: [...]; returns [...].

    The jackknife, since it needs no formula for the bias of each distance and takes off the whole
    term in 1 / n: plug-in entropies and their like are too large by about K / n at a party, which
    is most of the value where parties are small.
    """
    # Without one example of class k that share loses 1 / n; then all grow by n / (n - 1).
    growth = (n / np.maximum(n - 1, 1))[..., None]
    share_of_one = 1 / n[..., None]
    less_one = np.maximum(p - share_of_one, 0.0)
    # What a cell has in proportion to p, or of q alone, is the same in all of these sums.
    of_others = cell(p * growth, q)  # [..., K] where the example is of another class
    of_its_class = cell(less_one * growth, q)
    # An example is of class k with probability p_k: K terms give the mean over all n examples.
    change = p * (of_its_class - of_others)
    gain = add_classes(of_others + change - cell(p, q))
    total: Floats = np.where(n > 1, (n - 1) * gain, 0.0)
    return total


def make_jackknife_bias(cell: Distance) -> Bias:
    """Return the `bias` of a distance sum_k cell(p_k, q_k): the jackknife's, of both sides.

    For distances to which rare classes add more than an IID deal shows: in a deal every party has
    the classes of the whole, so fewer rare ones than a skewed party.

    Parameters
    ----------
    cell : callable
        (p, q) -> [..., K], what each class adds, of distributions [..., K].

    Returns
    -------
    callable
        (p, q, n, m) -> [...], as `DistanceMeasure` takes it.

    Examples
    --------
    >>> bias = make_jackknife_bias(lambda p, q: (p - q) ** 2)
    >>> p, q = np.array([[0.5, 0.5]]), np.array([[0.5, 0.5]])
    >>> bias(p, q, np.array([10]), None).round(4).tolist()  # about 1 / (2 n)
    [0.0556]
    """

    def bias(p: Floats, q: Floats, n: Ints, m: Ints | None) -> Floats:
        of_p = jackknife(cell, p, q, n)
        if m is None:
            return of_p
        return of_p + jackknife(cell, q, p, m)

    return bias


def bound_means(
    to_mixture: Callable[[Floats], Floats], g: Floats, w: Floats
) -> tuple[Floats, Floats]:
    """Return the largest mean to the whole, and over pairs, that a distance can have.

    Parameters
    ----------
    to_mixture : callable
        Of a distance that is jointly convex, and 1 between distributions without a common class:
        to_mixture(s) is its value from a distribution to a mixture that holds it with share s, the
        rest of which has no class in common with it.
    g : array of float [..., K]
        The shares of the classes among all examples; many wholes may come at once.
    w : array of float [P] or [..., P]
        The parties' shares of the examples, the same of all wholes or of each its own.

    Returns
    -------
    to_whole, over_pairs : array of float [...]
        Of a `DistanceMeasure` these are `largest`.

    Notes
    -----
    By convexity in the parties the mean to the whole is at most that of parties of one class each,
    sum_k g_k to_mixture(g_k). The whole holds party i with share w_i, so the mean is at most
    sum_i w_i to_mixture(w_i) too, which parties without a common class have. Pairs of parties of
    one class each are 1 apart where the classes differ, so their mean is at most the share of pairs
    of examples that differ in class.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])  # two classes, two parties; total variation
    >>> to_whole, over_pairs = bound_means(lambda s: 1 - s, half, half)
    >>> float(to_whole), float(over_pairs)
    (0.5, 1.0)
    """
    of_one_class_each = (g * to_mixture(g)).sum(axis=-1)
    of_no_common_class = (w * to_mixture(w)).sum(axis=-1)
    to_whole = np.minimum(of_one_class_each, of_no_common_class)
    different_parties = 1 - (w * w).sum(axis=-1)
    different_classes = 1 - (g * g).sum(axis=-1)
    over_pairs = np.minimum(1.0, divide_or_zero(different_classes, different_parties))
    return to_whole, over_pairs
