"""IID by chance: the reference for code that deals examples one by one."""

import numpy as np

from ..arithmetic.rng import Ints, Stream
from . import Deal, MinSize
from ._multinomial import draw_counts

__all__ = ["multinomial_sizes"]

PAPER = "hsu2019measuring"
READING = "sample"  # examples are dealt at random, whatever their class


def multinomial_sizes(
    class_sizes: Ints, n_parties: int, rng: Stream, *, min_size: MinSize = 10
) -> Deal:
    """IID by chance: each example goes to a party that is drawn uniformly, so that sizes are
    multinomial. The limit of dir-multinomial for a large beta; homo deals equally many instead.

    Returns
    -------
    Deal
        Draws: sizes [P], before parties are filled up; moved [M, 3] (row, from, to).
    """
    n = int(class_sizes.sum(dtype=np.int64))
    equal = np.ones(n_parties)
    sizes = rng.draw("sizes", lambda s: draw_counts(s, equal, n))
    return Deal(
        holders=np.arange(n_parties, dtype=np.int32),
        sizes=sizes,
        draws={"sizes": sizes},
        by_class=False,
        min_size=min_size,
        rank=rng.child("rank").permutation(n_parties),
    )
