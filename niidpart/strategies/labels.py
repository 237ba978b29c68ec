"""Label skew by the number of classes that a party holds."""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.deal import split_evenly
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError
from . import Owners

__all__ = ["label_count"]


def label_count(
    labels: Ints,
    n_parties: int,
    rng: Stream,
    *,
    k: Annotated[int, "Classes that each party holds, from 1 to all."] = 2,
) -> Owners:
    """#C=k: each party holds k classes, drawn at random, all classes held where there are as many parties. Li et al., ICDE 2022, section IV-B.

    One class of each party is dealt: the classes in a random order, again and again, to the parties in a random order. (The authors' code
    gives party i class i mod K, and so shares depend on places.) The other k-1 are drawn from the rest. The examples of a class are dealt
    evenly, in random order, among the parties that hold it; those of a class that no party drew belong to nobody (only with fewer parties
    than classes). Draws: held [P, K] uint8, 1 where the party holds the class.
    """
    n_classes = int(labels.max()) + 1
    if not 1 <= k <= n_classes:
        raise UsageError(f"k is {k}; a party can hold 1 to {n_classes} classes of this data")
    held = rng.draw("held", lambda s: _held(s, n_parties, n_classes, k))
    order = rng.child("order").grouped_permutation(labels, n_classes)
    ends = np.cumsum(np.bincount(labels, minlength=n_classes))
    ranks = rng.child("rank")
    owner = np.full(len(labels), -1, np.int64)
    for rows, holds in zip(np.split(order, ends[:-1]), held.T, strict=True):
        parties = ranks.permutation(n_parties)  # who gets one more is drawn too
        parties = parties[holds[parties] == 1]
        if len(parties):
            owner[rows] = np.repeat(parties, split_evenly(len(rows), len(parties)))
    return Owners(owner, {"held": held})


def _held(rng: Stream, n_parties: int, n_classes: int, k: int) -> NDArray[np.uint8]:
    """[P, K] uint8: class i mod K, and the k-1 others with the smallest random words (the low bits are the class, so words differ)."""
    low = max(n_classes - 1, 1).bit_length()
    words = (
        rng.words(n_parties * n_classes).reshape(n_parties, n_classes)
        >> np.uint64(low)
        << np.uint64(low)
    )
    words |= np.arange(n_classes, dtype=np.uint64)
    own = rng.permutation(n_classes)[rng.permutation(n_parties) % n_classes]
    words[np.arange(n_parties), own] = 0
    words.sort(axis=1)
    chosen = (words[:, :k] & np.uint64((1 << low) - 1)).astype(np.int64)
    chosen[:, 0] = own
    held = np.zeros((n_parties, n_classes), np.uint8)
    np.put_along_axis(held, chosen, 1, axis=1)
    return held
