"""KMNIST as torchvision leaves it on a disk."""

from pathlib import Path

from ..data import Data, DataSource, list_downloads
from ..data.readers.files import AnySize
from ..data.readers.idx import list_mnist_places, load_mnist_like

PLACES = list_mnist_places("kmnist", "KMNIST")

_DOWNLOADS = list_downloads(
    "KMNIST/raw",
    [
        "http://codh.rois.ac.jp/kmnist/dataset/kmnist/",
    ],
    {
        "train-images-idx3-ubyte.gz": ("md5:bdb82020997e1d708af4cf47b453dcf7", 18_165_135),
        "train-labels-idx1-ubyte.gz": ("md5:e144d726b3acfaa3e44228e80efcd344", 29_497),
        "t10k-images-idx3-ubyte.gz": ("md5:5c965bf0a639b31b8f53240b1b52f4d7", 3_041_136),
        "t10k-labels-idx1-ubyte.gz": ("md5:7320c461ea6c1c855c0b718fb2a4b134", 5_120),
    },
)


def kmnist(root: str | Path, *, any_size: AnySize = False) -> Data:
    """KMNIST: 60,000 training and 10,000 test images, uint8 [N, 28, 28], 10 classes.

    Parameters
    ----------
    root : path
        The folder that holds `KMNIST/raw`.
    any_size : bool
        Take files with other counts than the published ones.
    """
    return load_mnist_like(root, PLACES, any_size)


ENTRY = DataSource(
    load=kmnist,
    later=frozenset({"any_size"}),
    places=PLACES,
    downloads=_DOWNLOADS,
    paper="clanuwat2018kuzushiji",
)
