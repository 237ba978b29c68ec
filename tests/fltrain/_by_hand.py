"""The example that steps are worked out on by hand."""

import numpy as np
from torch import nn

import niidpart

X = np.array([[1.0], [2.0], [2.0], [2.0]], np.float32)
Y = np.array([0, 1, 1, 1])


def make_two_parties(dealt, float64):
    """Party 0 holds one example x = 1 of class 0, party 1 three examples x = 2 of class 1; the model is w x with w = (0, 0).

    Weights are (w, -w) throughout: the gradient by w is -x / (1 + exp(2 w x)) for class 0, the opposite of its mirror for class 1.
    """
    data, model = niidpart.from_arrays(X, Y, X, Y), float64(nn.Linear(1, 2, bias=False))
    nn.init.zeros_(model[0].weight)
    return dealt(data, [0, 1, 1, 1], test=[0, 1, 1, 1]), data, model


# Unequal parties, of which some train in a round, with momentum and decay; batches of which the last is short.
HARD = {
    "rounds": 4,
    "fraction": 0.6,
    "momentum": 0.9,
    "weight_decay": 1e-3,
    "lr": 0.05,
    "batch_size": 6,
    "local_epochs": 2,
}
