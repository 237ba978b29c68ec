"""MATLAB files of SVHN's layout."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FileFault
from .files import open_packed


def read_digits_mat(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """(images [n, H, W, 3] uint8, labels [n] 0..9) of a file with X [H, W, 3, n] and y [n, 1], where 10 stands for 0."""
    import scipy.io

    with open_packed(path) as f:
        try:
            held = scipy.io.loadmat(f, variable_names=["X", "y"])
        except Exception as error:  # damage shows as any kind of error there
            raise FileFault(
                f"{path} cannot be read as a MATLAB file ({type(error).__name__}: {error}); fetch it again"
            ) from error
    if "X" not in held or "y" not in held:
        raise FileFault(f"{path} lacks X (images) or y (labels); fetch it again")
    x, y = np.asarray(held["X"]), np.asarray(held["y"])
    if (
        x.dtype != np.uint8
        or x.ndim != 4
        or x.shape[2] != 3
        or y.size != x.shape[3]
        or y.dtype.kind not in "iuf"
    ):
        raise FileFault(
            f"{path} has X {x.dtype}{list(x.shape)} and y {y.dtype}{list(y.shape)}; uint8 [H, W, 3, n] and [n, 1] are needed"
        )
    y = y.reshape(-1)
    if not np.isin(y, np.arange(11)).all():
        raise FileFault(
            f"{path} has labels {y.min()}..{y.max()}; digits 1..10 (10 for 0) are needed"
        )
    return np.ascontiguousarray(x.transpose(3, 0, 1, 2)), y.astype(np.int64) % 10
