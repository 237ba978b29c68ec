"""SVHN (street view house numbers, cropped digits) as torchvision leaves it on a disk."""

from pathlib import Path

from ..data import Data, from_arrays
from ..data.readers.files import AnySize, build_not_found, find_all_files, require_published_counts
from ..data.readers.mat import read_digits_mat

__all__ = ["svhn"]


def svhn(root: str | Path, *, any_size: AnySize = False) -> Data:
    """SVHN: 73,257 training and 26,032 test images, uint8 [N, 32, 32, 3], 10 digits; without the extra set. root: the folder that holds
    `train_32x32.mat` and `test_32x32.mat`.

    Netzer et al., NIPS Workshop on Deep Learning and Unsupervised Feature Learning 2011. The files' label 10 is the digit 0.
    """
    places = [Path(root), Path(root) / "SVHN", Path(root) / "svhn"]
    names = ["train_32x32.mat", "test_32x32.mat"]
    found = find_all_files(places, names)
    if found is None:
        get = f"python -c \"from torchvision.datasets import SVHN; [SVHN('{root}', s, download=True) for s in ('train', 'test')]\""
        raise build_not_found("SVHN", names, places, get)
    (x, y), (x_test, y_test) = (read_digits_mat(path) for path in found)
    require_published_counts(
        "SVHN",
        (len(y), len(y_test)),
        (73_257, 26_032),
        ("training images", "test images"),
        any_size,
    )
    return from_arrays(x, y, x_test, y_test)
