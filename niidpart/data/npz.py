"""Any data set in one numpy archive."""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import Data, from_arrays

__all__ = ["npz"]


def npz(root: str | Path) -> Data:
    """An .npz file with the keys `x, y` (and `x_test, y_test`), or `x_train, y_train` (and so on); `x` may be missing for labels alone.

    uint8 features are divided by 255 in training, floats are taken as they are. Nothing is unpickled.
    """
    path = Path(root)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; give the path of an .npz archive")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is no .npz archive; numpy.savez(path, x=..., y=...) writes one")
    archive = np.load(path, allow_pickle=False)
    with archive:
        train = "x_train" if "y_train" in archive else "x"
        labels = train.replace("x", "y", 1)
        if labels not in archive:
            raise ValueError(f"{path} has the keys {', '.join(archive.files)}; 'y' (or 'y_train') is needed, and 'x' (or 'x_train') for training")
        x, y, x_test, y_test = (_column(archive, key, path) for key in (train, labels, "x_test", "y_test"))
    if y is None:
        raise ValueError(f"{path}: the array {labels!r} is empty")
    return from_arrays(x, y, x_test, y_test)


def _column(archive: Any, key: str, path: Path) -> NDArray[Any] | None:
    if key not in archive:
        return None
    try:
        array: NDArray[Any] = archive[key]
    except (ValueError, OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: {key!r} cannot be read ({error}); save plain numbers or fixed-length strings") from error
    return array
