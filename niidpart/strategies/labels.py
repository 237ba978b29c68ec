"""Label skew by the number of classes that a party holds."""

import numpy as np

from ..arithmetic.deal import split_evenly
from ..arithmetic.rng import Ints, Stream
from . import Deal
from ._held_classes import ClassCount, draw_classes, require_class_count

__all__ = ["label_count"]

PAPER = "li2022silos"
READING = "proportions"  # a class is dealt evenly: no share of it is left to chance
SKEWED_BY = "k"


def label_count(
    class_sizes: Ints,
    n_parties: int,
    rng: Stream,
    *,
    k: ClassCount = 2,
) -> Deal:
    """#C=k: each party holds k classes, drawn at random, all classes held where there are as many
    parties. Li et al., ICDE 2022, section IV-B.

    One class of each party is dealt: the classes in a random order, again and again, to the
    parties in a random order. (The authors' code gives party i class i mod K, and so shares
    depend on places.) The other k-1 are drawn from the rest. The examples of a class are dealt
    evenly, in random order, among the parties that hold it; those of a class that no party drew
    belong to nobody (only with fewer parties than classes).

    Returns
    -------
    Deal
        Draws: held [P, K] uint8, 1 where the party holds the class.

    Raises
    ------
    UsageError
        For a k above the number of classes.
    """
    n_classes = len(class_sizes)
    require_class_count(k, n_classes)
    held = rng.draw("held", lambda s: draw_classes(s, n_parties, n_classes, k))
    ranks = rng.child("rank")
    holders, sizes = [], []
    for size, is_holder in zip(class_sizes.tolist(), held.T, strict=True):
        rank = ranks.permutation(n_parties)  # who gets one more is drawn too
        holders_of_class = rank[is_holder[rank] == 1]
        if not len(holders_of_class):
            holders_of_class = np.array([-1])
        holders.append(holders_of_class)
        sizes.append(split_evenly(size, len(holders_of_class)))
    return Deal(
        holders=np.concatenate(holders).astype(np.int32),
        sizes=np.concatenate(sizes),
        draws={"held": held},
    )
