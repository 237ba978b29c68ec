"""VGG-11."""

from itertools import pairwise

from torch import nn

from ._shapes import require_image
from ._staged import Staged

__all__ = ["vgg11"]

WIDTHS = (64, 128, 256, 256, 512, 512, 512, 512)
POOLED = (1, 2, 4, 6, 8)  # max-pooling after these convolutions


def vgg11(shape: tuple[int, ...], n_classes: int) -> Staged:
    """Eight 3 x 3 convolutions (64, 128, 256, 256, 4 x 512), five max-poolings, two hidden layers
    of 512, dropout. Simonyan, Zisserman, ICLR 2015.

    9,750,922 parameters for 3 x 32 x 32 and 10 classes. NIID-Bench's model `vgg`: the technical
    report of Li et al., ICDE 2022, says VGG-9, the released script runs this one. ReLU. Dropout of
    one half before each hidden layer. Convolutions start from N(0, 2 / (9 channels)) with zero
    biases, as in the authors' code.
    """
    require_image("vgg11", shape, (32,), instead="vgg9" if shape[1:] == (28, 28) else "hidden200")
    stages: dict[str, nn.Module] = {}
    for i, (channels, width) in enumerate(pairwise((shape[0], *WIDTHS)), 1):
        conv = nn.Conv2d(channels, width, 3, padding=1)
        nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
        if conv.bias is not None:
            nn.init.zeros_(conv.bias)
        layers: list[nn.Module] = [conv, nn.ReLU()]
        if i in POOLED:
            layers.append(nn.MaxPool2d(2))
        stages[f"conv{i}"] = nn.Sequential(*layers)
    stages["fc1"] = nn.Sequential(
        nn.Flatten(),
        nn.Dropout(),
        nn.Linear(512, 512),
        nn.ReLU(),
    )
    stages["fc2"] = nn.Sequential(
        nn.Dropout(),
        nn.Linear(512, 512),
        nn.ReLU(),
    )
    return Staged(**stages, out=nn.Linear(512, n_classes))
