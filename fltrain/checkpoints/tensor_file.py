"""The bytes of a safetensors file, a block at a time: what it holds is never there twice."""

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save
from torch import Tensor

from niidpart.splits.recipe import JSON

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
    in_order = [sources[name] for name in header]
    return TensorFile(_write_header(header), in_order)


def _write_header(header: JSON) -> bytes:
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def read_whole(tensor: Tensor) -> TensorSource:
    """Return a tensor as a source."""
    flat = tensor.detach().reshape(-1)

    def read(first: int, last: int) -> Bytes:
        host = flat[first:last].cpu().contiguous()
        piece: Bytes = host.view(torch.uint8).numpy()
        return piece

    return TensorSource(tensor.dtype, tuple(tensor.shape), flat.numel(), read)


class TensorReader:
    """Reads a file of tensors, each into its place, and takes the digest of what was read.

    Parameters
    ----------
    file : BufferedReader
        At its beginning.
    """

    def __init__(self, file: BufferedReader):
        self._file = file
        self._left = os.fstat(file.fileno()).st_size
        self._digest = hashlib.sha256()

    @property
    def digest(self) -> str:
        """The sha256 of the bytes so far."""
        return self._digest.hexdigest()

    def read_all(self) -> dict[str, Tensor]:
        """Return the tensors. ValueError, TypeError, LookupError where it is no file of tensors."""
        length = int.from_bytes(self._read(8), "little")
        header = json.loads(self._read(length))
        if not isinstance(header, dict):
            raise ValueError("a file of tensors begins with a table of them")
        header.pop("__metadata__", None)
        dtypes = _find_dtypes(header)
        whole, tensors = self._left, {}
        for name in sorted(header, key=lambda name: tuple(header[name]["data_offsets"])):
            first, last = header[name]["data_offsets"]
            shape, dtype = header[name]["shape"], dtypes[name]
            n_bytes = math.prod(shape) * dtype.itemsize
            # one behind the other, as they are read, and none larger than what there is
            if first != whole - self._left or last - first != n_bytes or min(shape, default=0) < 0:
                raise ValueError(f"the tensor {name!a} is not where it says")
            self._require(n_bytes)
            tensors[name] = torch.empty(shape, dtype=dtype)
            self._fill(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
        if self._left:
            raise ValueError(f"behind the tensors come {self._left} bytes")
        return tensors

    def pass_over_rest(self) -> None:
        """Take what is left into the digest."""
        while self._left:
            self._read(min(self._left, BLOCK_BYTES))

    def _read(self, n_bytes: int) -> bytearray:
        self._require(n_bytes)
        into = bytearray(n_bytes)
        self._fill(memoryview(into))
        return into

    def _require(self, n_bytes: int) -> None:
        if n_bytes > self._left:
            raise ValueError(f"the file ends {n_bytes - self._left} bytes before its tensors do")

    def _fill(self, into: memoryview) -> None:
        if self._file.readinto(into) != len(into):
            raise ValueError("the file became shorter while it was read")
        self._left -= len(into)
        self._digest.update(into)


def _find_dtypes(header: JSON) -> dict[str, torch.dtype]:
    """Return the types of tensors, by what the library makes of empty ones."""
    empty = {
        name: {"dtype": entry["dtype"], "shape": [0], "data_offsets": [0, 0]}
        for name, entry in header.items()
    }
    return {name: tensor.dtype for name, tensor in load(_write_header(empty)).items()}
