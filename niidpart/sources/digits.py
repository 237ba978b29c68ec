"""The data that is always there: 1,797 real handwritten digits of 8 x 8 pixels, in the package."""

from importlib.resources import files
from pathlib import Path

import numpy as np

from ..data import Data, from_arrays

__all__ = ["digits"]

TEST_ROWS = 360  # the last 360 rows are the test set


def digits(root: str | Path | None = None) -> Data:
    """UCI Optical Recognition of Handwritten Digits (test part), as scikit-learn's `load_digits` gives it, divided by 16: float32 in [0, 1]."""
    with (
        files("niidpart.sources").joinpath("digits.npz").open("rb") as f,
        np.load(f, allow_pickle=False) as archive,
    ):
        x, y = archive["x"].astype(np.float32) / np.float32(16), archive["y"].astype(np.int64)
    return from_arrays(x[:-TEST_ROWS], y[:-TEST_ROWS], x[-TEST_ROWS:], y[-TEST_ROWS:])
