"""MNIST as torchvision leaves it on a disk."""

from pathlib import Path

from ..data import Data, DataSource, list_downloads
from ..data.readers.files import AnySize
from ..data.readers.idx import list_mnist_places, load_mnist_like

PLACES = list_mnist_places("mnist", "MNIST")

_DOWNLOADS = list_downloads(
    "MNIST/raw",
    [
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "http://yann.lecun.com/exdb/mnist/",
    ],
    {
        "train-images-idx3-ubyte.gz": ("md5:f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
        "train-labels-idx1-ubyte.gz": ("md5:d53e105ee54ea40749a09fcbcd1e9432", 28_881),
        "t10k-images-idx3-ubyte.gz": ("md5:9fb629c4189551a2d022fa330f9573f3", 1_648_877),
        "t10k-labels-idx1-ubyte.gz": ("md5:ec29112dd5afa0611ce80d1b7f02629c", 4_542),
    },
)


def mnist(root: str | Path, *, any_size: AnySize = False) -> Data:
    """MNIST: 60,000 training and 10,000 test images, uint8 [N, 28, 28], 10 classes.

    Parameters
    ----------
    root : path
        The folder that holds `MNIST/raw`.
    any_size : bool
        Take files with other counts than the published ones.
    """
    return load_mnist_like(root, PLACES, any_size)


ENTRY = DataSource(
    load=mnist,
    later=frozenset({"any_size"}),
    places=PLACES,
    downloads=_DOWNLOADS,
    paper="lecun1998gradient",
)
