"""The data that is always there: 1,797 real handwritten digits, in the package."""

from importlib.resources import files
from pathlib import Path

import numpy as np

from ..data import Data, DataSource, from_arrays

TEST_ROWS = 360  # the last 360 rows are the test set


def digits(root: str | Path | None = None) -> Data:
    """UCI Optical Recognition of Handwritten Digits (test part): float32 [N, 8, 8] in [0, 1].

    As scikit-learn's `load_digits` gives it, divided by 16.

    Parameters
    ----------
    root : None
        Nothing is read from outside the package.
    """
    archived = files("niidpart.sources").joinpath("digits.npz")
    with archived.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        x = archive["x"].astype(np.float32) / np.float32(16)
        y = archive["y"].astype(np.int64)
    n = len(y) - TEST_ROWS
    return from_arrays(x[:n], y[:n], x[n:], y[n:])


ENTRY = DataSource(load=digits, is_here=True, paper="alpaydin1998digits")
