"""Numbers rounded at random to a few levels of the length."""

import math

import torch
from torch import Tensor

from . import Compressor, UpdateDraw
from ._bits import count_index_bits


def qsgd(
    update: Tensor,
    draw: UpdateDraw,
    *,
    qsgd_levels: int,
    error_feedback: bool,
) -> Tensor:
    """Length times sign times a level. Alistarh, Grubic, Li, Tomioka, Vojnovic, NeurIPS 2017.

    |u_i| / length lies between two of the levels l / s, and goes to one of them at random, so that
    its mean is itself. With error feedback all is divided by 1 + min(n / s^2, sqrt(n) / s), without
    which the memory could grow from round to round: Koloskova, Stich, Jaggi, ICML 2019.
    """
    wide = update.double()
    length = wide.square().sum().sqrt()
    safe = torch.where(length > 0, length, 1.0)
    position = wide.abs() / safe * qsgd_levels
    below = position.floor()
    is_up = draw.draw_uniform(update.numel(), update.device) < position - below
    level = (below + is_up).clamp(max=qsgd_levels)
    arrived = length * wide.sign() * level / qsgd_levels
    if error_feedback:
        arrived = arrived / bound_variance(update.numel(), qsgd_levels)
    return arrived.to(update.dtype)


def bound_variance(n: int, levels: int) -> float:
    """Return 1 + min(n / s^2, sqrt(n) / s): the squared length of what arrives is at most that many
    times the update's, in the mean."""
    return 1 + min(n / levels**2, math.sqrt(n) / levels)


def count_qsgd_bits(n: int, width: int, *, qsgd_levels: int) -> int:
    """A sign and a level for each number, all of one number of bits, and the length."""
    return n * (1 + count_index_bits(qsgd_levels + 1)) + width


ENTRY = Compressor(compress=qsgd, count_bits=count_qsgd_bits)
