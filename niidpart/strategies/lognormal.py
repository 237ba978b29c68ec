"""Quantity skew: parties of log-normal size, each with the labels of the whole."""

from typing import Annotated

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from ..registry import AtLeast, AtMost
from . import Deal, MinSize
from ._sizes import deal_by_size, normalise_logs

__all__ = ["lognormal_sizes"]

PAPER = "acar2021dynamic"
READING = "sample"  # examples are dealt at random, whatever their class
SKEWED_BY = "sigma"


def lognormal_sizes(
    class_sizes: Ints,
    n_parties: int,
    rng: Stream,
    *,
    sigma: Annotated[
        float,
        "Standard deviation of the logarithm of a party's size: 0 for equal sizes, 1 is strong.",
        AtLeast(0),
        AtMost(100),
    ] = 0.3,
    min_size: MinSize = 10,
) -> Deal:
    """Quantity skew: party sizes in proportions exp(sigma * z), z ~ N(0, 1); labels are not looked
    at. Acar et al., ICLR 2021, unbalanced data.

    The sizes sum to N, so they are log-normal up to a factor that all parties share. Counts by
    largest remainder. (The authors' code, which FedLab took over, rounds all sizes down and gives
    what is left to the first party.)

    Returns
    -------
    Deal
        Draws: proportions [P]; moved [M, 3] (row, from, to).
    """

    def draw_proportions(s: Stream) -> Floats:
        return normalise_logs(sigma * s.normal(n_parties))

    proportions = rng.draw("proportions", draw_proportions)
    return deal_by_size(class_sizes, proportions, rng, min_size)
