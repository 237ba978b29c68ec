"""FedBN's network for digits."""

from torch import nn

from ._shapes import require_image
from ._staged import Staged

__all__ = ["digits_bn"]


def digits_bn(shape: tuple[int, ...], n_classes: int) -> Staged:
    """Three 5 x 5 convolutions (64, 64, 128), then 2048, 512 and K units, batch norm after each but
    the last. Li et al., ICLR 2021 (FedBN).

    14,219,210 parameters for 3 x 28 x 28 and 10 classes, and 5,637 numbers in buffers. The model of
    its digits: ReLU, 2 x 2 max-pooling after the first two. Its norms of single units cannot train
    on a batch of one example.
    """
    require_image("digits-bn", shape, (28, 32))
    side = shape[1] // 4
    flat = 128 * side * side
    return Staged(
        conv1=nn.Sequential(
            nn.Conv2d(shape[0], 64, 5, padding=2),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ),
        conv2=nn.Sequential(
            nn.Conv2d(64, 64, 5, padding=2),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ),
        conv3=nn.Sequential(
            nn.Conv2d(64, 128, 5, padding=2),
            nn.BatchNorm2d(128),
            nn.ReLU(),
        ),
        fc1=nn.Sequential(
            nn.Flatten(),
            nn.Linear(flat, 2048),
            nn.BatchNorm1d(2048),
            nn.ReLU(),
        ),
        fc2=nn.Sequential(
            nn.Linear(2048, 512),
            nn.BatchNorm1d(512),
            nn.ReLU(),
        ),
        out=nn.Linear(512, n_classes),
    )
