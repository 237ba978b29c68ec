"""FL-bench's end of a partition, which its forks have too: classes handed out, test parts cut."""

import numpy as np

from ..arithmetic.numpy_draws.legacy import LegacyDraws
from ..arithmetic.rng import Ints
from ._replays import PartyRows


def hand_out(class_rows: PartyRows, counts: Ints) -> PartyRows:
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
