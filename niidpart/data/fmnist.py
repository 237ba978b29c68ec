"""FashionMNIST as torchvision leaves it on a disk."""

from pathlib import Path

from . import Data
from ._idx import mnist_like

__all__ = ["fmnist"]


def fmnist(root: str | Path) -> Data:
    """FashionMNIST: 60,000 training and 10,000 test images, uint8 [N, 28, 28], 10 classes. root: the folder that holds `FashionMNIST/raw`."""
    return mnist_like(root, "FashionMNIST")
