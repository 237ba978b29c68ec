"""Parties of given proportions, whatever their classes: for the strategies that draw sizes."""

import numpy as np

from ..arithmetic import exact
from ..arithmetic.deal import apportion
from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from . import Deal


def normalise_logs(logs: Floats) -> Floats:
    """Return [P] proportions of which these are the logarithms, up to what all have in common."""
    relative = exact.exp(logs - logs.max())
    shares: Floats = relative / exact.add_in_order(relative)
    return shares


def deal_by_size(class_sizes: Ints, proportions: Floats, rng: Stream, min_size: int) -> Deal:
    """Return the deal that gives party p its share of all examples, by largest remainder."""
    n_parties = len(proportions)
    n = int(class_sizes.sum(dtype=np.int64))
    rank = rng.child("rank").permutation(n_parties)
    return Deal(
        holders=np.arange(n_parties, dtype=np.int32),
        sizes=apportion(proportions, n, rank),
        draws={"proportions": proportions},
        by_class=False,
        min_size=min_size,
        rank=rank,
    )
