"""Quantity skew: party sizes fall exponentially, each party with the labels of the whole."""

from typing import Annotated

import numpy as np

from ..arithmetic import exact
from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from ..registry import AtLeast, AtMost
from . import Deal, MinSize
from ._sizes import deal_by_size, normalise_logs

__all__ = ["exponential_sizes"]

PAPER = "beutel2020flower"
READING = "sample"  # examples are dealt at random, whatever their class
SKEWED_BY = "ratio"


def exponential_sizes(
    class_sizes: Ints,
    n_parties: int,
    rng: Stream,
    *,
    ratio: Annotated[
        float,
        "How many times as large as the smallest party the largest is; 1 for equal sizes.",
        AtLeast(1),
        AtMost(1e12),
    ] = 10.0,
    min_size: MinSize = 10,
) -> Deal:
    """Quantity skew: sizes fall exponentially, from one party to the next smaller by the same
    factor, in all by ratio; labels are not looked at. As Flower's ExponentialPartitioner (Beutel
    et al., 2020), whose factor is e whatever the number of parties.

    Which party has which size is drawn, so that no size depends on a place. Counts by largest
    remainder. (Sizes that are drawn from an exponential distribution are quantity with beta 1.)

    Returns
    -------
    Deal
        Draws: proportions [P]; moved [M, 3] (row, from, to).
    """

    def draw_proportions(s: Stream) -> Floats:
        place = s.permutation(n_parties)
        [whole] = exact.log(np.array([ratio])).tolist()
        step = whole / max(n_parties - 1, 1)
        return normalise_logs(-step * place)

    proportions = rng.draw("proportions", draw_proportions)
    return deal_by_size(class_sizes, proportions, rng, min_size)
