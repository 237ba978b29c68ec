"""SVHN (street view house numbers, cropped digits) as torchvision leaves it on a disk."""

from pathlib import Path

from ..data import Data, DataSource, from_arrays, list_downloads
from ..data.places import DataPlaces
from ..data.readers.files import AnySize, require_published_counts
from ..data.readers.mat import read_digits_mat

PLACES = DataPlaces(
    title="SVHN",
    folders=("", "SVHN", "svhn"),
    forms=(("train_32x32.mat", "test_32x32.mat"),),
    get="get svhn",
)

_DOWNLOADS = list_downloads(
    "",
    ["http://ufldl.stanford.edu/housenumbers/"],
    {
        "train_32x32.mat": ("md5:e26dedcc434d2e4c54c9b2d4a06d8373", 182_040_794),
        "test_32x32.mat": ("md5:eb5a983be6a315427106f1b164d9cef3", 64_275_384),
    },
)


def svhn(root: str | Path, *, any_size: AnySize = False) -> Data:
    """SVHN: 73,257 training and 26,032 test images, uint8 [N, 32, 32, 3], 10 digits.

    Netzer et al., NIPS Workshop on Deep Learning and Unsupervised Feature Learning 2011. Without
    the extra set. The files' label 10 is the digit 0.

    Parameters
    ----------
    root : path
        The folder that holds `train_32x32.mat` and `test_32x32.mat`.
    any_size : bool
        Take files with other counts than the published ones.
    """
    path, test_path = PLACES.require(root)
    x, y = read_digits_mat(path)
    x_test, y_test = read_digits_mat(test_path)
    require_published_counts(
        "SVHN",
        got=(len(y), len(y_test)),
        published=(73_257, 26_032),
        kinds=("training images", "test images"),
        any_size=any_size,
    )
    return from_arrays(x, y, x_test, y_test)


ENTRY = DataSource(load=svhn, places=PLACES, downloads=_DOWNLOADS, paper="netzer2011svhn")
