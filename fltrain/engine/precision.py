"""How CUDA calculates while a run lasts."""

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def use_precision(device: str, tf32: bool) -> Iterator[None]:
    """On CUDA deterministic kernels, and TF32 only where it is asked for (torch has it on for convolutions); afterwards all is as before."""
    if device != "cuda":
        yield
        return
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = cudnn.deterministic, cudnn.allow_tf32, matmul.allow_tf32
    cudnn.deterministic, cudnn.allow_tf32, matmul.allow_tf32 = True, tf32, tf32
    try:
        yield
    finally:
        cudnn.deterministic, cudnn.allow_tf32, matmul.allow_tf32 = before
