"""A sigmoid network of two layers."""

from math import prod

from torch import nn

from ._staged import Staged

__all__ = ["twonn"]


def twonn(shape: tuple[int, ...], n_classes: int) -> Staged:
    """One hidden layer of 1000 sigmoid units, no biases. Cha, Chang, Information 2025; activation
    and biases from the authors' code.

    794,000 parameters for 1 x 28 x 28 and 10 classes, 3,082,000 for 3 x 32 x 32. The
    class-incremental network of Zhang et al., Science Advances 2023 (NACA), has the same layers,
    with a sigmoid on its outputs too.
    """
    return Staged(
        fc1=nn.Sequential(
            nn.Flatten(),
            nn.Linear(prod(shape), 1000, bias=False),
            nn.Sigmoid(),
        ),
        out=nn.Linear(1000, n_classes, bias=False),
    )
