"""The test set of a data set dealt among the parties too."""

from dataclasses import replace

import numpy as np

from ..arithmetic.rng import Ints
from ..errors import UsageError
from .record import Data
from .rows import chain_features


def pool_test_set(data: Data) -> Data:
    """Return the data with its test rows behind its training rows, and without a test set.

    Groups stay where both sets have them.

    Parameters
    ----------
    data : Data

    Returns
    -------
    Data

    Raises
    ------
    UsageError
        For data without a test set.

    Examples
    --------
    >>> import niidpart
    >>> pool_test_set(niidpart.from_arrays(None, [0, 1], None, [1])).labels.tolist()
    [0, 1, 1]
    """
    if data.test_labels is None:
        what = "pool puts the test set behind the training set, and this data has no test set"
        raise UsageError(f"{what}; leave pool out")
    n, n_test = len(data.labels), len(data.test_labels)
    features = None
    if data.features is not None and data.test_features is not None:
        features = chain_features((data.features, n), (data.test_features, n_test))
    groups = None
    if data.groups is not None and data.test_groups is not None:
        groups = np.concatenate([data.groups, data.test_groups])
    return replace(
        data,
        labels=np.concatenate([data.labels, data.test_labels]),
        features=features,
        groups=groups,
        group_names=() if groups is None else data.group_names,
        test_labels=None,
        test_features=None,
        test_groups=None,
        noisy_labels=_pool_noisy_labels(data),
        embeddings=None,  # there are none of the test rows
    )


def _pool_noisy_labels(data: Data) -> Ints | None:
    """Return what people gave for the training rows, and the true labels of the test rows."""
    if data.noisy_labels is None or data.test_labels is None:
        return None
    return np.concatenate([data.noisy_labels, data.test_labels])
