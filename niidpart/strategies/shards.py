"""Label skew by sorted shards, as the first federated experiments had it."""

from typing import Annotated

import numpy as np

from ..arithmetic.deal import split_evenly
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError
from ..registry import AtLeast
from . import Deal

__all__ = ["sorted_shards"]

PAPER = "mcmahan2017communication"
READING = "proportions"  # which shards is drawn, what is in them is not
SKEWED_BY = "shards"


def sorted_shards(
    class_sizes: Ints,
    n_parties: int,
    rng: Stream,
    *,
    shards: Annotated[int, "Shards that each party gets.", AtLeast(1)] = 2,
) -> Deal:
    """Sorted by class, cut into shards * P equal shards, `shards` of them dealt to each party.
    McMahan et al., AISTATS 2017, section 3.

    Within a class the order is random. A shard may span two classes, so a party may hold more
    than `shards` of them. Shards differ by at most one example.

    Returns
    -------
    Deal
        Draws: shard [P, shards], which ones each party got.

    Raises
    ------
    UsageError
        For more shards than examples.
    """
    n = int(class_sizes.sum(dtype=np.int64))
    n_shards = shards * n_parties
    if n_shards > n:
        raise UsageError(
            f"{n_parties} parties x {shards} shards need {n_shards} examples, there are {n}; "
            f"use at most {n // shards} parties"
        )
    shape = (n_parties, shards)
    shard = rng.draw("shard", lambda s: s.permutation(n_shards).reshape(shape))
    holder = np.empty(n_shards, np.int32)  # the party of each shard
    holder[shard] = np.arange(n_parties)[:, np.newaxis]
    return Deal(holders=holder, sizes=split_evenly(n, n_shards), draws={"shard": shard})
