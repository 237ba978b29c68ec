"""FedRL's smaller CNN."""

from torch import nn

from ._shapes import require_image
from ._staged import Staged

__all__ = ["cnn_fedrl"]


def cnn_fedrl(shape: tuple[int, ...], n_classes: int) -> Staged:
    """Two 5 x 5 convolutions (6 and 16 channels), each with ReLU and 2 x 2 max-pooling, then 120
    and K units. Wang, Wang, Pei, ICMLC 2024.

    34,622 parameters for 1 x 28 x 28 and 10 classes, 52,202 for 3 x 32 x 32. Section 4.1, for MNIST
    and Fashion-MNIST, names the layers (two convolutions, two poolings, two fully connected) but
    not their widths: these are those of the CNN of Li et al., ICDE 2022.
    """
    require_image("cnn-fedrl", shape, (28, 32))
    side = (shape[1] - 12) // 4  # of the image behind both convolutions and poolings
    flat = 16 * side * side
    return Staged(
        conv1=nn.Sequential(
            nn.Conv2d(shape[0], 6, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ),
        conv2=nn.Sequential(
            nn.Conv2d(6, 16, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ),
        fc1=nn.Sequential(
            nn.Flatten(),
            nn.Linear(flat, 120),
            nn.ReLU(),
        ),
        out=nn.Linear(120, n_classes),
    )
