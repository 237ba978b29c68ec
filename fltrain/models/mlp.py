"""The papers' multi-layer perceptron for tables."""

from itertools import pairwise
from math import prod

from torch import nn

from ._staged import Staged

__all__ = ["mlp"]


def mlp(shape: tuple[int, ...], n_classes: int) -> Staged:
    """Hidden layers of 32, 16 and 8 units with ReLU; weights from N(0, 0.1), biases 0.1. Li et al.,
    ICDE 2022, section V.

    4,650 parameters for a9a (123 features, 2 classes), 2,442 for covtype, 1,512,266 for rcv1.
    """
    widths = [prod(shape), 32, 16, 8]
    hidden = {}
    for i, (n_in, n_out) in enumerate(pairwise(widths), 1):
        layers: list[nn.Module] = [nn.Linear(n_in, n_out), nn.ReLU()]
        if i == 1:
            layers.insert(0, nn.Flatten())
        hidden[f"fc{i}"] = nn.Sequential(*layers)
    model = Staged(**hidden, out=nn.Linear(8, n_classes))
    for name, p in model.named_parameters():
        if name.endswith("weight"):
            nn.init.normal_(p, 0.0, 0.1)
        else:
            nn.init.constant_(p, 0.1)
    return model
