"""Logistic regression."""

from math import prod

from torch import nn

from ._staged import Staged

__all__ = ["linear"]


def linear(shape: tuple[int, ...], n_classes: int) -> Staged:
    """One linear layer; 8 parameters for FCUBE, as the authors' code of NIID-Bench has it."""
    return Staged(out=nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), n_classes)))
