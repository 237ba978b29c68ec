"""VGG-9."""

from torch import nn

from ._shapes import require_image
from ._staged import Staged

__all__ = ["vgg9"]


def vgg9(shape: tuple[int, ...], n_classes: int) -> Staged:
    """Six 3 x 3 convolutions in pairs (32, 64, 128, 128, 256, 256), max-pooling after each pair,
    two hidden layers, dropout. Li et al., ICDE 2022.

    3,491,530 parameters for 3 x 32 x 32 and 10 classes, with hidden layers of 512 and 512;
    4,015,754 for 1 x 28 x 28, where the authors' code (its model `vgg-9`) has 1024 and 512. ReLU.
    Dropout as there: 5 % of the channels before the fifth convolution, 10 % before the first hidden
    and before the last layer.
    """
    require_image("vgg9", shape, (28, 32))
    side = shape[1] // 8
    flat = 256 * side * side
    hidden = 1024 if shape[1] == 28 else 512
    return Staged(
        conv1=nn.Sequential(nn.Conv2d(shape[0], 32, 3, padding=1), nn.ReLU()),
        conv2=nn.Sequential(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        conv3=nn.Sequential(nn.Conv2d(64, 128, 3, padding=1), nn.ReLU()),
        conv4=nn.Sequential(
            nn.Conv2d(128, 128, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ),
        conv5=nn.Sequential(
            nn.Dropout2d(0.05),
            nn.Conv2d(128, 256, 3, padding=1),
            nn.ReLU(),
        ),
        conv6=nn.Sequential(
            nn.Conv2d(256, 256, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ),
        fc1=nn.Sequential(
            nn.Flatten(),
            nn.Dropout(0.1),
            nn.Linear(flat, hidden),
            nn.ReLU(),
        ),
        fc2=nn.Sequential(nn.Linear(hidden, 512), nn.ReLU()),
        out=nn.Sequential(nn.Dropout(0.1), nn.Linear(512, n_classes)),
    )
