"""KMNIST as torchvision leaves it on a disk."""

from pathlib import Path

from ..data import Data, DataSource
from ..data.readers.files import AnySize
from ..data.readers.idx import load_mnist_like


def kmnist(root: str | Path, *, any_size: AnySize = False) -> Data:
    """KMNIST: 60,000 training and 10,000 test images, uint8 [N, 28, 28], 10 classes.

    Parameters
    ----------
    root : path
        The folder that holds `KMNIST/raw`.
    any_size : bool
        Take files with other counts than the published ones.
    """
    return load_mnist_like(root, "KMNIST", any_size)


ENTRY = DataSource(load=kmnist, later=frozenset({"any_size"}))
