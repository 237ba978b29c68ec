"""scikit-learn's train_test_split, which published code calls: its draws made again.

With `stratify` each class gives the same share, rounded, and ties in rounding are drawn.
"""

import math

import numpy as np

from ..arithmetic.numpy_draws.legacy import LegacyDraws
from ..arithmetic.rng import Ints
from ..errors import UsageError
from ._replays import list_rows

_LEAST = 2  # examples of each class, without which nothing is stratified


def split_rows(draws: LegacyDraws, labels: Ints, test_ratio: float) -> tuple[Ints, Ints]:
    """Return the rows to train on and those to test on, by class where classes are large enough.

    UsageError where nothing would be left to train on.
    """
    n = len(labels)
    n_test = math.ceil(test_ratio * n)
    n_train = n - n_test
    if not n_train:
        raise UsageError(f"a test part of {test_ratio} leaves none of {n} examples to train on")
    class_rows = [rows for rows in list_rows(labels) if len(rows)]
    sizes = np.array([len(rows) for rows in class_rows])
    if sizes.min() < _LEAST or min(n_train, n_test) < len(sizes):
        order = draws.permutation(n)
        return order[n_test:], order[:n_test]
    train_counts = _share_out(draws, sizes, n_train)
    test_counts = _share_out(draws, sizes - train_counts, n_test)
    train, test = [], []
    for rows, first, second in zip(class_rows, train_counts, test_counts, strict=True):
        ordered = rows[draws.permutation(len(rows))]
        train.append(ordered[:first])
        test.append(ordered[first : first + second])
    return _shuffle_joined(draws, train), _shuffle_joined(draws, test)


def _share_out(draws: LegacyDraws, sizes: Ints, n: int) -> Ints:
    """Return how many of n are of each class: rounded down, and the largest remainders get more."""
    wanted = sizes / sizes.sum(dtype=np.int64) * n
    counts: Ints = np.floor(wanted).astype(np.int64)
    rest = wanted - counts
    missing = n - int(counts.sum(dtype=np.int64))
    for value in np.unique(rest)[::-1]:
        if not missing:
            break
        equal = np.flatnonzero(rest == value)
        more = equal[draws.choose(len(equal), min(len(equal), missing))]
        counts[more] += 1
        missing -= len(more)
    return counts


def _shuffle_joined(draws: LegacyDraws, pieces: list[Ints]) -> Ints:
    joined: Ints = np.concatenate(pieces)
    draws.shuffle(joined)
    return joined
