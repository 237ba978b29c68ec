"""USPS handwritten digits as torchvision leaves them on a disk."""

from pathlib import Path

import numpy as np

from ..data import Array, Data, DataSource, from_arrays, list_downloads
from ..data.places import DataPlaces
from ..data.readers.files import AnySize, require_published_counts
from ..data.readers.svmlight import read_libsvm
from ..errors import FileFault

_SIDE = 16  # pixels

PLACES = DataPlaces(
    title="USPS",
    folders=("", "USPS", "usps"),
    forms=(("usps", "usps.t"),),
    get="get usps",
    shown=("usps.bz2 with usps.t.bz2",),
)

_DOWNLOADS = list_downloads(
    "",
    ["https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"],
    {
        "usps.bz2": ("md5:ec16c51db3855ca6c91edd34d0e9b197", 6_579_383),
        "usps.t.bz2": ("md5:8ea070ee2aca1ac39742fdd1ef5ed118", 1_831_726),
    },
)


def usps(root: str | Path, *, any_size: AnySize = False) -> Data:
    """USPS: 7,291 training and 2,007 test images, uint8 [N, 16, 16], 10 digits.

    Hull, IEEE PAMI 16(5), 1994. The files' labels 1..10 are the digits 0..9, values -1..1 become
    0..255, rounded down, as torchvision does. Needs scikit-learn.

    Parameters
    ----------
    root : path
        The folder that holds `usps.bz2` and `usps.t.bz2`.
    any_size : bool
        Take files with other counts than the published ones.
    """
    path, test_path = PLACES.require(root)
    x, y = _read_digits(path)
    x_test, y_test = _read_digits(test_path)
    require_published_counts(
        "USPS",
        got=(len(y), len(y_test)),
        published=(7_291, 2_007),
        kinds=("training images", "test images"),
        any_size=any_size,
    )
    return from_arrays(x, y, x_test, y_test)


def _read_digits(path: Path) -> tuple[Array, Array]:
    x, y = read_libsvm(path, _SIDE * _SIDE)
    farthest = np.abs(x.data).max(initial=0)
    if farthest > 1 or y.min() < 1 or y.max() > 10:
        raise FileFault(f"{path} has values outside -1..1 or labels outside 1..10; fetch it again")
    share = (x.toarray() + np.float32(1)) / np.float32(2)  # 0 to 1
    images = (share * np.float32(255)).astype(np.uint8)
    return images.reshape(-1, _SIDE, _SIDE), y - 1


ENTRY = DataSource(load=usps, places=PLACES, downloads=_DOWNLOADS, paper="hull1994usps")
