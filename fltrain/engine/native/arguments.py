"""What the compiled step is handed."""

import ctypes

import torch
from torch import Tensor

from ...tree import Tree
from .layers import LayerTable

BYTES = (
    torch.arange(256, dtype=torch.uint8).float().div_(255)
)  # what a byte is worth, as `Examples.inputs` has it


class StepArguments(ctypes.Structure):
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


def flatten_parameters(values: Tree, layers: LayerTable) -> Tensor:
    """[parameters] float32, a copy."""
    return torch.cat([values[name].detach().reshape(-1) for name in layers.names]).float()


def address_of(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
