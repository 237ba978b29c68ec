"""Quantity skew: parties of unequal size, each with the labels of the whole."""

from ..arithmetic.rng import Ints, Stream
from . import Beta, Deal, MinSize
from ._sizes import deal_by_size

__all__ = ["quantity"]

PAPER = "li2022silos"
READING = "sample"  # examples are dealt at random, whatever their class


def quantity(
    class_sizes: Ints,
    n_parties: int,
    rng: Stream,
    *,
    beta: Beta = 0.5,
    min_size: MinSize = 10,
) -> Deal:
    """Quantity skew: party sizes in proportions q ~ Dir(beta); labels are not looked at. Li et
    al., ICDE 2022, section IV-D.

    Returns
    -------
    Deal
        Draws: proportions [P]; moved [M, 3] (row, from, to).
    """
    proportions = rng.draw("proportions", lambda s: s.dirichlet(beta, (n_parties,)))
    return deal_by_size(class_sizes, proportions, rng, min_size)
