"""How CUDA calculates while a run lasts."""

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def use_precision(device: str, tf32: bool) -> Iterator[None]:
    """Use deterministic kernels on CUDA, and TF32 only where it is asked for.

    Torch has TF32 on for convolutions by default. Afterwards all is as before.
    """
    if device != "cuda":
        yield
        return
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = cudnn.deterministic, cudnn.allow_tf32, matmul.allow_tf32
    cudnn.deterministic = True
    cudnn.allow_tf32 = tf32
    matmul.allow_tf32 = tf32
    try:
        yield
    finally:
        cudnn.deterministic, cudnn.allow_tf32, matmul.allow_tf32 = before
