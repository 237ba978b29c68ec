"""Features on the device: where they lie in memory already, or copied a piece at a time."""

import warnings

import numpy as np
import torch
from torch import Tensor

from niidpart.arithmetic.rng import Ints
from niidpart.data import Features

# Bytes from which on the parties read the rows of the data set itself. Less is copied, in the order
# of the parties, which is a few per cent faster to read.
SHARED_FROM = 1 << 28
_PIECE = 1 << 26  # bytes copied at a time


def share_features(features: Features, n_rows: int, device: torch.device) -> Tensor | None:
    """Return those of all rows where they lie in memory: of a large data set on the CPU.

    None for any other, of which each part is to have its own rows copied.
    """
    if device.type != "cpu":
        return None
    if n_rows * features(slice(0, 1)).nbytes < SHARED_FROM:
        return None
    return put_channels_first(features(slice(None)))


def copy_features(features: Features, rows: Ints, device: torch.device) -> Tensor:
    """Return those of some rows on the device, copied a piece at a time."""
    one = put_channels_first(features(rows[:1]))
    copied = torch.empty((len(rows), *one.shape[1:]), dtype=one.dtype, device=device)
    at_once = max(1, _PIECE // max(1, one.nbytes))
    for start in range(0, len(rows), at_once):
        piece = slice(start, start + at_once)
        copied[piece] = put_channels_first(features(rows[piece]))
    return copied


def hold_features(x: np.ndarray, device: torch.device) -> Tensor:
    """Return all of x on the device: x itself where it is large and there already."""
    arranged = put_channels_first(x)
    if device.type == "cpu" and arranged.nbytes >= SHARED_FROM:
        return arranged
    return torch.empty(arranged.shape, dtype=arranged.dtype, device=device).copy_(arranged)


def put_channels_first(x: np.ndarray) -> Tensor:
    """Return images as [n, C, H, W], tables as [n, D]; uint8 or float32. A view where it can be."""
    if x.dtype != np.uint8:
        x = x.astype(np.float32, copy=False)
    x = np.ascontiguousarray(x)
    if x.ndim == 3:
        x = x[:, None]
    elif x.ndim == 4:
        x = x.transpose(0, 3, 1, 2)
    with warnings.catch_warnings():
        # nothing is written into it, so it may well be an array that cannot be written
        warnings.filterwarnings("ignore", message="The given NumPy array is not writ")
        return torch.from_numpy(x)
