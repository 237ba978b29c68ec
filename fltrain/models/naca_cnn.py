"""NACA's convolutional network."""

from torch import nn

from ._shapes import require_image
from ._staged import Staged

__all__ = ["naca_cnn"]


def naca_cnn(shape: tuple[int, ...], n_classes: int) -> Staged:
    """Two 5 x 5 convolutions (64, 128) with sigmoid and max-pooling, then 1000 sigmoid units and K.
    Zhang et al., Science Advances 2023 (NACA).

    8,411,792 parameters for 3 x 32 x 32 and 10 classes, 6,488,592 for 1 x 28 x 28. The layers are
    those of NACA's code for images, where the activation is an option and every layer has biases;
    sigmoid, max-pooling and no biases in the last two layers are those of the FedNACA in Cha,
    Chang, Information 2025 (their code). Both put a sigmoid on the outputs too: it belongs to their
    squared error, so it is not part of the model. Pooling opens the next stage, so that a stage
    ends with its sigmoid, which is what NACA modulates.
    """
    require_image("naca-cnn", shape, (28, 32))
    side = shape[1] // 4
    return Staged(
        conv1=nn.Sequential(nn.Conv2d(shape[0], 64, 5, padding=2), nn.Sigmoid()),
        conv2=nn.Sequential(
            nn.MaxPool2d(2),
            nn.Conv2d(64, 128, 5, padding=2),
            nn.Sigmoid(),
        ),
        fc1=nn.Sequential(
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(128 * side * side, 1000, bias=False),
            nn.Sigmoid(),
        ),
        out=nn.Linear(1000, n_classes, bias=False),
    )
