"""A long tail: from class to class fewer examples are left, before anybody deals them."""

from dataclasses import replace

import numpy as np

from ..arithmetic import exact
from ..arithmetic.rng import Ints, stream
from ..arithmetic.words import Array
from ..errors import UsageError
from ..registry import AtLeast, AtMost, coerce
from .record import Data
from .rows import Features, resolve_rows

PAPER = "cao2019learning"
_RANGES = (AtLeast(1), AtMost(1e9))
_CLOSE = 1e-6  # of one example: shares that are whole but for rounding count as whole


def check_imbalance(what: str, factor: object) -> float:
    """Return an imbalance factor; UsageError for what is none. what: its name, for errors."""
    value = coerce(
        what, factor, float, _RANGES, "how many times as large as the last class the first is"
    )
    return float(value)


def make_long_tail(data: Data, factor: float) -> Data:
    """Return the data with fewer and fewer training examples from class to class; its test set
    stays whole.

    Of class k = 0..K-1 the share factor^(-k/(K-1)) is left, rounded down, one example at least:
    the exponential profile of Cao et al., NeurIPS 2019, the long-tailed CIFAR, on classes of one
    size. Which examples stay is drawn once for all, so the data is one data set whatever the seed
    of a split. Rows are numbered anew.

    Parameters
    ----------
    data : Data
    factor : float
        The imbalance factor: how many times as many examples the first class has as the last.

    Returns
    -------
    Data

    Raises
    ------
    UsageError
        For a factor below 1, and for one class.

    Examples
    --------
    >>> import niidpart, numpy as np
    >>> tailed = make_long_tail(niidpart.from_arrays(None, np.arange(50_000) % 10), 100)
    >>> np.bincount(tailed.labels).tolist()
    [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]
    """
    factor = check_imbalance("long_tail", factor)
    n_classes = len(data.class_names)
    if n_classes < 2:
        raise UsageError("a long tail needs at least 2 classes, and this data has one")
    kept = _draw_kept(data.labels, n_classes, factor)
    return replace(
        data,
        labels=data.labels[kept],
        features=_select_rows(data.features, kept),
        groups=_select(data.groups, kept),
        noisy_labels=_select(data.noisy_labels, kept),
        embeddings=None if data.embeddings is None else data.embeddings[kept],
    )


def _draw_kept(labels: Ints, n_classes: int, factor: float) -> Ints:
    """Return the rows that stay, ascending."""
    sizes = np.bincount(labels, minlength=n_classes)
    [whole] = exact.log(np.array([factor])).tolist()
    place = np.arange(n_classes) / (n_classes - 1)
    shares = sizes * exact.exp(-whole * place)
    left = np.floor(shares + _CLOSE).astype(np.int64)
    left = np.minimum(np.maximum(left, 1), sizes)  # a class without examples keeps none
    order = stream(0, "long tail").grouped_permutation(labels, n_classes)
    first = np.cumsum(sizes, dtype=np.int64) - sizes  # where each class begins in the order
    rank = np.arange(len(labels)) - np.repeat(first, sizes)
    return np.sort(order[rank < np.repeat(left, sizes)])


def _select(values: Ints | None, kept: Ints) -> Ints | None:
    return None if values is None else values[kept]


def _select_rows(features: Features | None, kept: Ints) -> Features | None:
    """Return what reads the rows that stay, by their new numbers."""
    if features is None:
        return None

    def read_rows(rows: Ints | slice) -> Array:
        return features(kept[resolve_rows(rows, len(kept))])

    return read_rows
