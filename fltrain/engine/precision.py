"""How CUDA calculates while a run lasts."""

import contextlib
from collections.abc import Iterator

import torch

from ..settings import Settings


@contextlib.contextmanager
def use_precision(settings: Settings) -> Iterator[None]:
    """On CUDA deterministic kernels, and TF32 only where the settings ask for it (torch has it on for convolutions); afterwards all is as before."""
    if settings.device != "cuda":
        yield
        return
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = cudnn.deterministic, cudnn.allow_tf32, matmul.allow_tf32
    cudnn.deterministic, cudnn.allow_tf32, matmul.allow_tf32 = True, settings.tf32, settings.tf32
    try:
        yield
    finally:
        cudnn.deterministic, cudnn.allow_tf32, matmul.allow_tf32 = before
