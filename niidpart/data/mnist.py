"""MNIST as torchvision leaves it on a disk."""

from pathlib import Path

from . import Data
from ._idx import mnist_like

__all__ = ["mnist"]


def mnist(root: str | Path) -> Data:
    """MNIST: 60,000 training and 10,000 test images, uint8 [N, 28, 28], 10 classes. root: the folder that holds `MNIST/raw`."""
    return mnist_like(root, "MNIST")
