"""The sign of each number, and one size for all."""

import torch
from torch import Tensor

from . import Compressor, UpdateDraw


def sign(update: Tensor, draw: UpdateDraw) -> Tensor:
    """Signs times the mean size. Karimireddy, Rebjock, Stich, Jaggi, ICML 2019, Algorithm 1.

    A bit has no third value, so that 0 counts as positive; the authors' code leaves it 0.
    """
    size = update.abs().mean(dtype=torch.float64).to(update.dtype)
    return torch.where(update < 0, -size, size)


def count_sign_bits(n: int, width: int) -> int:
    """A bit for each number, and the size."""
    return n + width


ENTRY = Compressor(compress=sign, count_bits=count_sign_bits)
