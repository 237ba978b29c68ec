"""Exact sums of uploads by compiled code, with the bits of `engine/sums.py`."""

import ctypes

import torch
from torch import Tensor

from ..sums import AddPair, two_sum


def make_add_pair(library: ctypes.CDLL) -> AddPair:
    """Return what does the work of `two_sum` in one pass over memory."""

    def add_pair(high: Tensor, low: Tensor, value: Tensor) -> None:
        # rows of sums lie in one piece; an upload is whatever the algorithm made
        is_plain = value.dtype == torch.float64 and value.is_contiguous()
        if not is_plain:
            two_sum(high, low, value)
            return
        places = high.data_ptr(), low.data_ptr(), value.data_ptr()
        library.fltrain_two_sum(*places, value.numel())

    return add_pair
