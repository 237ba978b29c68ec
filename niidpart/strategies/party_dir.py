"""Label skew by a Dirichlet draw per party, with parties of unequal size."""

from typing import Annotated

import numpy as np

from ..arithmetic.deal import apportion
from ..arithmetic.rng import Ints, Stream
from ..registry import AtLeast, AtMost
from . import Beta, Deal, MinSize
from ._margins import deal_table, reconcile, require_margins

__all__ = ["party_dirichlet"]

PAPER = "cha2025quantity"
READING = "rough-proportions"  # each round of the sharing out rounds anew
SIZED_BY = "spread"


def party_dirichlet(
    class_sizes: Ints,
    n_parties: int,
    rng: Stream,
    *,
    beta: Beta = 0.5,
    spread: Annotated[
        float,
        "Half-width of the parties' sizes as a fraction of N/P; 0 for equal sizes.",
        AtLeast(0),
        AtMost(1),
    ] = 0.0,
    min_size: MinSize = 10,
) -> Deal:
    """Each party mixes its classes in proportions q_i ~ Dir(beta); sizes ~ U around N/P. Cha and
    Chang, Information 2025, section 3.2.

    spread is the paper's lambda * P / N; the sizes are rescaled to sum to N. Every example is
    dealt once. Where parties want more of a class than there is, it is shared among them in
    proportion to what they want; what they then lack they take from the classes that are left, by
    their own q_i (where that is 0 for all of these: as much of each as is left).

    Returns
    -------
    Deal
        Draws: proportions [P, K]; sizes [P]; moved [M, 3] (row, from, to).

    Raises
    ------
    UsageError
        For stored draws that are not those of a split of these labels.
    """
    n = int(class_sizes.sum(dtype=np.int64))
    n_classes = len(class_sizes)
    rank = rng.child("rank").permutation(n_parties)
    class_rank = rng.child("class_rank").permutation(n_classes)

    def draw_sizes(s: Stream) -> Ints:
        relative = 1 + spread * (2 * s.uniform(n_parties) - 1)  # 1 - spread .. 1 + spread
        return apportion(relative, n, rank)

    proportions = rng.draw("proportions", lambda s: s.dirichlet(beta, (n_parties, n_classes)))
    sizes = rng.draw("sizes", draw_sizes)
    require_margins(proportions, sizes, class_sizes)
    counts = reconcile(proportions, sizes, class_sizes, rank, class_rank)
    draws = {"proportions": proportions, "sizes": sizes}
    return deal_table(counts, draws, min_size, rank)
