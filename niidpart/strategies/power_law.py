"""Quantity skew: party sizes follow a power law, each party with the labels of the whole."""

from typing import Annotated

from ..arithmetic import exact
from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from ..registry import AtLeast, AtMost
from . import Deal, MinSize
from ._sizes import deal_by_size, normalise_logs

__all__ = ["power_law_sizes"]

PAPER = "li2020fedprox"
READING = "sample"  # examples are dealt at random, whatever their class
SKEWED_BY = "exponent"


def power_law_sizes(
    class_sizes: Ints,
    n_parties: int,
    rng: Stream,
    *,
    exponent: Annotated[
        float,
        "How fast large parties become rare: P(size > s) ~ s^-exponent; 1 is strong, 100 nearly "
        "none.",
        AtLeast(0.01),
        AtMost(1e6),
    ] = 2.0,
    min_size: MinSize = 10,
) -> Deal:
    """Quantity skew: party sizes in proportions u^(-1/exponent), u ~ U(0, 1), which is a power law
    (Pareto); labels are not looked at. Li et al., MLSys 2020 (FedProx), section 5.1.

    The paper says that sizes follow a power law, and not which; its code draws log-normal ones
    with sigma 2, which is the strategy lognormal. Counts by largest remainder.

    Returns
    -------
    Deal
        Draws: proportions [P]; moved [M, 3] (row, from, to).
    """

    def draw_proportions(s: Stream) -> Floats:
        return normalise_logs(exact.log(s.uniform(n_parties)) / -exponent)

    proportions = rng.draw("proportions", draw_proportions)
    return deal_by_size(class_sizes, proportions, rng, min_size)
