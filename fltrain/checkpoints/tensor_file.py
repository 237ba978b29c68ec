"""The bytes of a safetensors file, made a block at a time: what it holds is never copied whole."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save
from torch import Tensor

BLOCK_BYTES = 16 << 20
_ALIGNMENT = 8  # of the data, behind the length of the header and the header

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class TensorSource:
    """Where the bytes of one tensor of a file come from.

    n_rows: pieces that it can be read in. read: the bytes of those from one to another.
    """

    dtype: torch.dtype
    shape: tuple[int, ...]
    n_rows: int
    read: Callable[[int, int], Bytes]

    @property
    def n_bytes(self) -> int:
        """The bytes of the tensor."""
        return math.prod(self.shape) * self.dtype.itemsize

    def make_blocks(self) -> Iterator[memoryview]:
        """Yield the bytes of the tensor, in blocks."""
        step = max(1, BLOCK_BYTES * self.n_rows // max(self.n_bytes, 1))
        for first in range(0, self.n_rows, step):
            block = self.read(first, min(first + step, self.n_rows))
            yield block.reshape(-1).data


class TensorFile(NamedTuple):
    """A file of tensors: its header, and where the rest comes from, in the order of the file."""

    header: bytes
    sources: list[TensorSource]

    @property
    def n_bytes(self) -> int:
        """The bytes of the file."""
        return len(self.header) + sum(source.n_bytes for source in self.sources)

    def make_blocks(self) -> Iterator[bytes | memoryview]:
        """Yield the bytes of the file, in blocks."""
        yield self.header
        for source in self.sources:
            yield from source.make_blocks()


def lay_out(sources: Mapping[str, TensorSource]) -> TensorFile:
    """Return the file that safetensors makes of these tensors."""
    # The library says in which order, and by which names of types: it lays out empty tensors.
    empty = {name: torch.empty(0, dtype=source.dtype) for name, source in sources.items()}
    laid_out = save(empty)
    length = int.from_bytes(laid_out[:8], "little")
    header = json.loads(laid_out[8 : 8 + length])
    end = 0
    for name, entry in header.items():
        source = sources[name]
        begin, end = end, end + source.n_bytes
        entry |= {"shape": list(source.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    in_order = [sources[name] for name in header]
    return TensorFile(len(text).to_bytes(8, "little") + text, in_order)


def read_whole(tensor: Tensor) -> TensorSource:
    """Return a tensor as a source."""
    flat = tensor.detach().reshape(-1)

    def read(first: int, last: int) -> Bytes:
        host = flat[first:last].cpu().contiguous()
        piece: Bytes = host.view(torch.uint8).numpy()
        return piece

    return TensorSource(tensor.dtype, tuple(tensor.shape), flat.numel(), read)
