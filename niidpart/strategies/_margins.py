"""Tables of counts with given sizes of parties and of classes: for strategies that say both."""

from collections.abc import Callable

import numpy as np

from ..arithmetic.deal import apportion, apportion_rows, apportion_weights
from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError
from . import Arrays, Deal


def deal_with_sizes(
    class_sizes: Ints,
    n_parties: int,
    rng: Stream,
    *,
    beta: float,
    draw_relative: Callable[[Stream], Floats],
    min_size: int,
) -> Deal:
    """Return the deal of proportions drawn per party to parties of drawn sizes.

    draw_relative: the sizes [P] up to a factor.
    """
    n = int(class_sizes.sum(dtype=np.int64))
    n_classes = len(class_sizes)
    rank = rng.child("rank").permutation(n_parties)
    class_rank = rng.child("class_rank").permutation(n_classes)
    proportions = rng.draw("proportions", lambda s: s.dirichlet(beta, (n_parties, n_classes)))
    sizes = rng.draw("sizes", lambda s: apportion(draw_relative(s), n, rank))
    require_margins(proportions, sizes, class_sizes)
    counts = reconcile(proportions, sizes, class_sizes, rank, class_rank)
    return deal_table(counts, {"proportions": proportions, "sizes": sizes}, min_size, rank)


def require_margins(proportions: Floats, sizes: Ints, class_sizes: Ints) -> None:
    """Raise UsageError for draws [P, K] and [P] that are not those of a split of these labels.

    Drawn ones are, but those of a file may be anything, and `reconcile` would never end.
    """
    n = int(class_sizes.sum(dtype=np.int64))
    shape = (len(sizes), len(class_sizes))
    has_proportions = proportions.shape == shape and (proportions >= 0).all()
    has_sizes = sizes.sum(dtype=np.int64) == n and sizes.min() >= 0
    if not (has_proportions and has_sizes):
        raise UsageError(
            "the stored proportions and sizes are not those of a split of these labels"
        )


def deal_table(counts: Ints, draws: Arrays, min_size: int, rank: Ints) -> Deal:
    """Return the deal of a table of counts [P, K]."""
    n_parties, n_classes = counts.shape
    return Deal(
        holders=np.tile(np.arange(n_parties, dtype=np.int32), n_classes),
        sizes=np.ascontiguousarray(counts.T).reshape(-1),
        draws=draws,
        min_size=min_size,
        rank=rank,
    )


def reconcile(
    proportions: Floats,
    sizes: Ints,
    supply: Ints,
    rank: Ints,
    class_rank: Ints,
) -> Ints:
    """Return [P, K] counts near sizes * proportions that agree with what there is.

    Row sums are `sizes`, column sums `supply`; both must have one total. Nobody's place plays a
    part: `rank` and `class_rank` settle ties.
    """
    counts = np.zeros(proportions.shape, np.int64)
    left, lacking = supply.copy(), sizes.copy()
    # In each round the parties ask for what they lack, and a class of which more is asked than is
    # left is shared out and closes. So there are at most K + 1 rounds.
    while True:
        some = np.flatnonzero(lacking)
        if not some.size:
            return counts
        wanted = np.where(left > 0, proportions[some], 0.0)
        wanted[wanted.max(axis=1) == 0] = left
        asked = apportion_rows(wanted, lacking[some], class_rank)
        is_short = asked.sum(axis=0, dtype=np.int64) > left
        for k in np.flatnonzero(is_short).tolist():
            asked[:, k] = apportion_weights(asked[:, k], int(left[k]), rank[some])
        counts[some] += asked
        left -= asked.sum(axis=0, dtype=np.int64)
        lacking[some] -= asked.sum(axis=1, dtype=np.int64)
