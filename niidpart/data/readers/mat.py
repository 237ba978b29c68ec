"""MATLAB files of SVHN's layout."""

from pathlib import Path

import numpy as np

from ...errors import FileFault
from ..rows import Array
from .files import open_packed


def read_digits_mat(path: Path) -> tuple[Array, Array]:
    """Return (images [n, H, W, 3] uint8, labels [n] 0..9) of a file.

    The file has X [H, W, 3, n] and y [n, 1], where 10 stands for 0.
    """
    import scipy.io

    with open_packed(path) as file:
        try:
            held = scipy.io.loadmat(file, variable_names=["X", "y"])
        except Exception as error:  # damage shows as any kind of error there
            reason = f"{type(error).__name__}: {error}"
            raise FileFault(
                f"{path} cannot be read as a MATLAB file ({reason}); fetch it again"
            ) from error
    if "X" not in held or "y" not in held:
        raise FileFault(f"{path} lacks X (images) or y (labels); fetch it again")
    x = np.asarray(held["X"])
    y = np.asarray(held["y"])
    are_images = x.dtype == np.uint8 and x.ndim == 4 and x.shape[2] == 3
    are_numbers = y.dtype.kind in "iuf"
    if not are_images or not are_numbers or y.size != x.shape[3]:
        got = f"X {x.dtype}{list(x.shape)} and y {y.dtype}{list(y.shape)}"
        raise FileFault(f"{path} has {got}; uint8 [H, W, 3, n] and [n, 1] are needed")
    y = y.reshape(-1)
    if not np.isin(y, np.arange(11)).all():
        got = f"labels {y.min()}..{y.max()}"
        raise FileFault(f"{path} has {got}; digits 1..10 (10 for 0) are needed")
    images = np.ascontiguousarray(x.transpose(3, 0, 1, 2))
    return images, y.astype(np.int64) % 10
