"""Networks of rivals that fltrain does not bring, for `--model models.py:NAME`."""

from math import prod

from torch import nn

from fltrain.models.resnet18_gn import resnet18_gn


def fedlab_mlp(shape: tuple[int, ...], n_classes: int) -> nn.Module:
    """Two hidden layers of 200 units: FedLab's MLP."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(prod(shape), 200),
        nn.ReLU(),
        nn.Linear(200, 200),
        nn.ReLU(),
        nn.Linear(200, n_classes),
    )


def resnet18_gn_large(shape: tuple[int, ...], n_classes: int) -> nn.Module:
    """ResNet-18 with group norm behind the stem for large images, as FL-Simulator has it."""
    network = resnet18_gn(shape, n_classes)
    wide = nn.Conv2d(shape[0], 64, 7, stride=2, padding=3, bias=False)
    network.stem = nn.Sequential(wide, nn.GroupNorm(2, 64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    return network
