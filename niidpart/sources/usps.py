"""USPS handwritten digits as torchvision leaves them on a disk."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import Data, from_arrays
from ..data.readers.files import AnySize, build_not_found, find_all_files, require_published_counts
from ..data.readers.svmlight import read_libsvm
from ..errors import FileFault

__all__ = ["usps"]


def usps(root: str | Path, *, any_size: AnySize = False) -> Data:
    """USPS: 7,291 training and 2,007 test images, uint8 [N, 16, 16], 10 digits. root: the folder that holds `usps.bz2` and `usps.t.bz2`.
    Needs scikit-learn.

    Hull, IEEE PAMI 16(5), 1994. The files' labels 1..10 are the digits 0..9, values -1..1 become 0..255, rounded down, as torchvision does.
    """
    places = [Path(root), Path(root) / "USPS", Path(root) / "usps"]
    names = ["usps", "usps.t"]
    found = find_all_files(places, names)
    if found is None:
        get = f"python -c \"from torchvision.datasets import USPS; [USPS('{root}', train=t, download=True) for t in (True, False)]\""
        raise build_not_found("USPS", [f"{n}.bz2" for n in names], places, get)
    (x, y), (x_test, y_test) = (_digits(path) for path in found)
    require_published_counts(
        "USPS", (len(y), len(y_test)), (7_291, 2_007), ("training images", "test images"), any_size
    )
    return from_arrays(x, y, x_test, y_test)


def _digits(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    x, y = read_libsvm(path, 256)
    if np.abs(x.data).max(initial=0) > 1 or y.min() < 1 or y.max() > 10:
        raise FileFault(f"{path} has values outside -1..1 or labels outside 1..10; fetch it again")
    grey = (x.toarray() + np.float32(1)) / np.float32(2) * np.float32(255)
    return grey.astype(np.uint8).reshape(-1, 16, 16), y - 1
