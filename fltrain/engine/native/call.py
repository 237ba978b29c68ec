"""What the compiled step is handed."""

import ctypes

import torch
from torch import Tensor

from ...tree import Tree
from .plan import Layers

BYTES = (
    torch.arange(256, dtype=torch.uint8).float().div_(255)
)  # what a byte is worth, as `Examples.inputs` has it


class Asked(ctypes.Structure):
    """`Asked` of step.cpp."""

    _fields_ = (
        [("ops", ctypes.c_void_p)]
        + [(name, ctypes.c_int64) for name in ("n_ops", "features", "parameters")]
        + [(name, ctypes.c_void_p) for name in ("w", "velocity", "start", "add", "after")]
        + [(name, ctypes.c_float) for name in ("lr", "momentum", "decay", "pull")]
        + [(name, ctypes.c_void_p) for name in ("x", "bytes", "y", "order")]
        + [(name, ctypes.c_int64) for name in ("per_epoch", "batch", "steps")]
        + [("stop", ctypes.c_void_p)]
    )


def flat_of(values: Tree, layers: Layers) -> Tensor:
    """[parameters] float32, a copy."""
    return torch.cat([values[name].detach().reshape(-1) for name in layers.names]).float()


def address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
