"""Label skew by sorted shards, as the first federated experiments had it."""

from typing import Annotated

import numpy as np

from ..arithmetic.deal import split_evenly
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError
from . import Owners

__all__ = ["sorted_shards"]


def sorted_shards(
    labels: Ints,
    n_parties: int,
    rng: Stream,
    *,
    shards: Annotated[int, "Shards that each party gets, at least 1."] = 2,
) -> Owners:
    """Sorted by class, cut into shards * P equal shards, `shards` of them dealt to each party. McMahan et al., AISTATS 2017, section 3.

    Within a class the order is random. A shard may span two classes, so a party may hold more than `shards` of them. Shards differ by at most
    one example. Draws: shard [P, shards], which ones each party got.
    """
    n = len(labels)
    if shards < 1:
        raise UsageError(f"shards is {shards}; each party gets at least 1")
    if shards * n_parties > n:
        raise UsageError(
            f"{n_parties} parties x {shards} shards need {shards * n_parties} examples, there are {n}; use at most {n // shards} parties"
        )
    shard = rng.draw(
        "shard", lambda s: s.permutation(shards * n_parties).reshape(n_parties, shards)
    )
    party = np.empty(shards * n_parties, np.int64)  # who holds each shard
    party[shard] = np.arange(n_parties)[:, None]
    owner = np.empty(n, np.int64)
    owner[rng.child("order").grouped_permutation(labels, int(labels.max()) + 1)] = np.repeat(
        party, split_evenly(n, shards * n_parties)
    )
    return Owners(owner, {"shard": shard})
