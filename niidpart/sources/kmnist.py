"""KMNIST as torchvision leaves it on a disk."""

from pathlib import Path

from ..data import Data
from ..data.readers.files import AnySize
from ..data.readers.idx import load_mnist_like

__all__ = ["kmnist"]

LATER = frozenset(
    {"any_size"}
)  # not stored where it is the default: splits made before it have the same digest


def kmnist(root: str | Path, *, any_size: AnySize = False) -> Data:
    """KMNIST: 60,000 training and 10,000 test images, uint8 [N, 28, 28], 10 classes. root: the folder that holds `KMNIST/raw`."""
    return load_mnist_like(root, "KMNIST", any_size)
