"""LEAF's network for the next letter."""

from math import sqrt

import torch
from torch import Tensor, nn

from niidpart.errors import UsageError

from ._letters import Letters
from ._staged import Staged

__all__ = ["lstm"]

WIDTH = 8  # numbers of a letter's vector
HIDDEN = 256


class Recurrent(nn.LSTM):
    """One LSTM layer: [B, T, D] to [B, T, H], or to its last output [B, H].

    Its forget gates start open, at 1, as TensorFlow's cell has them.
    """

    def __init__(self, width: int, hidden: int, only_last: bool):
        super().__init__(width, hidden, batch_first=True)
        self.only_last = only_last
        bound = sqrt(6 / (width + 5 * hidden))  # Glorot's, of one matrix from D + H to 4 H
        for name, weight in self.named_parameters():
            if name.startswith("bias"):
                nn.init.zeros_(weight)
            else:
                nn.init.uniform_(weight, -bound, bound)
        with torch.no_grad():  # its gates are in, forget, cell, out
            self.get_parameter("bias_ih_l0")[hidden : 2 * hidden] = 1.0

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        outputs: Tensor = super().forward(x)[0]
        return outputs[:, -1] if self.only_last else outputs


def lstm(shape: tuple[int, ...], n_classes: int) -> Staged:
    """Letters as vectors of 8 numbers, two LSTM layers of 256, and of the last output the letter
    that follows. Caldas et al., 2018 (LEAF), their code, after McMahan et al., AISTATS 2017.

    819,920 parameters for 80 letters. There are as many letters as classes. LEAF's cell has one
    bias a gate and 817,872 parameters; torch's has two, which start as one does there. Initial
    weights are those of TensorFlow, as LEAF's are: Glorot's uniform ones, biases of 0 and forget
    gates of 1.
    """
    if len(shape) != 1:
        raise UsageError(
            f"lstm takes rows of letters, these examples have shape {shape}; use --model hidden200"
        )
    letters = Letters(n_classes, WIDTH)
    out = nn.Linear(HIDDEN, n_classes)
    nn.init.xavier_uniform_(letters.weight)
    nn.init.xavier_uniform_(out.weight)
    nn.init.zeros_(out.bias)
    return Staged(
        letters=letters,
        lstm1=Recurrent(WIDTH, HIDDEN, only_last=False),
        lstm2=Recurrent(HIDDEN, HIDDEN, only_last=True),
        out=out,
    )
