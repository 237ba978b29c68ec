"""The cut of classes with a balance step that FedLab, PFLlib and others took over.

Yurochkin et al., ICML 2019: whoever has a fair share gets nothing of the next class.
"""

import numpy as np

from ..arithmetic.numpy_draws.legacy import LegacyDraws
from ..arithmetic.rng import Ints
from . import Owners
from ._replays import (
    cut_counts,
    limit_tries,
    list_rows,
    normalise,
    refuse_endless,
    store_tries,
)


def cut_balanced(
    draws: LegacyDraws, labels: Ints, n_parties: int, beta: float, least: int, alternative: str
) -> Owners:
    """Return the split, drawn again until each party has `least` examples.

    alternative: the strategy that an error names.
    """
    n = len(labels)
    class_rows = list_rows(labels)
    n_tries = limit_tries(n)
    for tries in range(1, n_tries + 1):
        owner = np.empty(n, np.int64)
        sizes = np.zeros(n_parties, np.int64)
        for rows in class_rows:
            order = rows.copy()
            draws.shuffle(order)
            has_room = sizes < n / n_parties
            proportions = normalise(draws.dirichlet(beta, n_parties) * has_room)
            counts = cut_counts(proportions, len(order))
            owner[order] = np.repeat(np.arange(n_parties), counts)
            sizes += counts
        if sizes.min() >= least:
            return Owners(owner, store_tries(tries))
    asked = f"each of {n_parties} parties {least} of {n} examples"
    raise refuse_endless(n_tries, f"beta {beta}", asked, alternative)
