"""How many CPU threads torch has."""

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def use_threads(n: int | None) -> Iterator[None]:
    """Give torch n CPU threads, None for as many as it has, and afterwards as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(n or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
