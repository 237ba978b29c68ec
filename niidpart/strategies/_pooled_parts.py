"""What FL-bench's forks have too: classes cut by Dirichlet draws and handed out, test parts cut."""

import numpy as np

from ..arithmetic.numpy_draws.legacy import LegacyDraws
from ..arithmetic.rng import Ints
from . import Arrays
from ._replays import (
    PartyRows,
    cut_counts,
    limit_tries,
    list_rows,
    normalise,
    refuse_endless,
    store_tries,
)


def cut_classes(
    draws: LegacyDraws, labels: Ints, n_parties: int, beta: float, least: int, *, balanced: bool
) -> tuple[PartyRows, Arrays]:
    """Return the split of --alpha. What one try has shuffled the next one shuffles on.

    balanced: whoever has a fair share gets nothing of the next class.
    """
    n = len(labels)
    class_rows = list_rows(labels)
    n_tries = limit_tries(n)
    for tries in range(1, n_tries + 1):
        sizes = np.zeros(n_parties, np.int64)
        all_counts = []
        for rows in class_rows:
            draws.shuffle(rows)
            proportions = draws.dirichlet(beta, n_parties)
            if balanced:
                proportions = normalise(proportions * (sizes < n / n_parties))
            counts = cut_counts(proportions, len(rows))
            all_counts.append(counts)
            sizes += counts
        if sizes.min() >= least:
            ordered = [rows.tolist() for rows in class_rows]
            return _hand_out(ordered, np.array(all_counts)), store_tries(tries)
    asked = f"each of {n_parties} parties {least} of {n} examples"
    alternative = "dir-balanced" if balanced else "dir"
    raise refuse_endless(n_tries, f"beta {beta}", asked, alternative)


def _hand_out(class_rows: PartyRows, counts: Ints) -> PartyRows:
    """Return each party's rows, class by class. counts: [K, P]."""
    parties: PartyRows = [[] for _ in range(counts.shape[1])]
    for rows, of_class in zip(class_rows, counts.tolist(), strict=True):
        start = 0
        for party, count in enumerate(of_class):
            parties[party] += rows[start : start + count]
            start += count
    return parties


def hold_out(draws: LegacyDraws, parties: PartyRows, ratio: float) -> dict[str, list[Ints]]:
    """Return each party's rows shuffled, the first of them for its test part."""
    train: list[Ints] = []
    test: list[Ints] = []
    for rows in parties:
        order = np.array(rows, np.int64)
        draws.shuffle(order)
        n_test = int(len(rows) * ratio)
        test.append(order[:n_test])
        train.append(order[n_test:])
    return {"train": train, "test": test}
