"""The largest numbers, and where they stand."""

import math

import torch
from torch import Tensor

from . import Compressor, UpdateDraw
from ._bits import count_index_bits


def topk(update: Tensor, draw: UpdateDraw, *, topk_share: float) -> Tensor:
    """The numbers of largest size, the others 0. Stich, Cordonnier, Jaggi, NeurIPS 2018.

    Of equal ones those that stand first.
    """
    n = update.numel()
    k = count_sent(n, topk_share)
    if k == n:
        return update
    sizes = update.abs()
    least = torch.topk(sizes, k).values[-1]
    is_above = sizes > least
    is_equal = sizes == least
    room = k - is_above.sum()
    fits = is_equal.cumsum(0) <= room
    return torch.where(is_above | (is_equal & fits), update, 0)


def count_topk_bits(n: int, width: int, *, topk_share: float) -> int:
    """Each number that is sent as it is, and its place; without places where all are sent."""
    k = count_sent(n, topk_share)
    if k == n:
        return n * width
    return k * (width + count_index_bits(n))


def count_sent(n: int, topk_share: float) -> int:
    """Return how many of n numbers are sent: the floor of their share, at least one."""
    # 100 x 0.29 is 28.999999999999996 in floats
    return max(1, math.floor(n * topk_share + 1e-9))


ENTRY = Compressor(compress=topk, count_bits=count_topk_bits)
