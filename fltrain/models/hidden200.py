"""A small network for small images."""

from math import prod

from torch import nn

from ._staged import Staged

__all__ = ["hidden200"]


def hidden200(shape: tuple[int, ...], n_classes: int) -> Staged:
    """One hidden layer of 200 units with ReLU; the default for the digits and for images that are
    neither 28 nor 32 pixels wide.
    """
    return Staged(
        fc1=nn.Sequential(
            nn.Flatten(),
            nn.Linear(prod(shape), 200),
            nn.ReLU(),
        ),
        out=nn.Linear(200, n_classes),
    )
