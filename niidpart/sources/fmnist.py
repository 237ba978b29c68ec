"""FashionMNIST as torchvision leaves it on a disk."""

from pathlib import Path

from ..data import Data, DataSource, list_downloads
from ..data.readers.files import AnySize
from ..data.readers.idx import list_mnist_places, load_mnist_like

PLACES = list_mnist_places("fmnist", "FashionMNIST")

_DOWNLOADS = list_downloads(
    "FashionMNIST/raw",
    [
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    ],
    {
        "train-images-idx3-ubyte.gz": ("md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
        "train-labels-idx1-ubyte.gz": ("md5:25c81989df183df01b3e8a0aad5dffbe", 29_515),
        "t10k-images-idx3-ubyte.gz": ("md5:bef4ecab320f06d8554ea6380940ec79", 4_422_102),
        "t10k-labels-idx1-ubyte.gz": ("md5:bb300cfdad3c16e7a12a480ee83cd310", 5_148),
    },
)


def fmnist(root: str | Path, *, any_size: AnySize = False) -> Data:
    """FashionMNIST: 60,000 training and 10,000 test images, uint8 [N, 28, 28], 10 classes.

    Parameters
    ----------
    root : path
        The folder that holds `FashionMNIST/raw`.
    any_size : bool
        Take files with other counts than the published ones.
    """
    return load_mnist_like(root, PLACES, any_size)


ENTRY = DataSource(
    load=fmnist,
    later=frozenset({"any_size"}),
    places=PLACES,
    downloads=_DOWNLOADS,
    paper="xiao2017fashion",
)
