"""The values of one HDF5 data set, decoded here and not in the C library: a chunk is inflated to its size and never beyond, its checksum checked."""

import zlib
from functools import cached_property
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from .faults import DAMAGE, Refused, first_line, refuse
from .stored import Array

SHUFFLE, DEFLATE, FLETCHER32 = (
    h5py.h5z.FILTER_SHUFFLE,
    h5py.h5z.FILTER_DEFLATE,
    h5py.h5z.FILTER_FLETCHER32,
)
_BLOCK = 1 << 20  # bytes at once of what has no chunks


class H5Array:
    """A data set after the rules on structure (`guard.py`); see `stored.StoredArray`. The file has to be open as long as it is read."""

    def __init__(self, path: str, item: h5py.Dataset, dtype: np.dtype[Any]):
        self.path, self.dtype, self._item = path, dtype, item
        self.shape: tuple[int, ...] = tuple(int(n) for n in item.shape)
        self._chunks: tuple[int, ...] | None = item.chunks
        plist = item.id.get_create_plist()
        self._filters: list[int] = [plist.get_filter(i)[0] for i in range(plist.get_nfilters())]
        row = max(1, int(np.prod(self.shape[1:], dtype=object)) * dtype.itemsize)
        self.block = self._chunks[0] if self._chunks else max(1, _BLOCK // row)
        self._last: tuple[tuple[int, ...], Array] | None = (
            None  # neighbours are often read one after the other
        )

    def rows(self, start: int, stop: int) -> Array:
        try:
            if self._chunks is None:
                got: Array = self._item[start:stop]
                return got.astype(self.dtype, copy=False)
            return self._assembled(start, stop, self._chunks)
        except (*DAMAGE, zlib.error) as error:
            raise Refused(
                18, f"/{self.path} is damaged ({first_line(error)}); fetch or make the file again"
            ) from error

    def _assembled(self, start: int, stop: int, chunks: tuple[int, ...]) -> Array:
        high, wide = chunks[0], chunks[1:]
        out = np.empty((stop - start, *self.shape[1:]), self.dtype)
        for top in range(start - start % high, stop, high):
            a, b = max(top, start), min(top + high, stop)
            for left in range(0, self.shape[1], wide[0]) if wide else (None,):
                if left is None:
                    out[a - start : b - start] = self._chunk((top,))[a - top : b - top]
                else:
                    columns = min(wide[0], self.shape[1] - left)
                    out[a - start : b - start, left : left + columns] = self._chunk((top, left))[
                        a - top : b - top, :columns
                    ]
        return out

    @cached_property
    def _places(self) -> dict[tuple[int, ...], int]:
        """Stored bytes of each chunk by where it begins."""
        places: dict[tuple[int, ...], int] = {}

        def note(info: Any) -> None:
            places[tuple(info.chunk_offset)] = int(info.size)

        self._item.id.chunk_iter(note)
        return places

    def _chunk(self, offset: tuple[int, ...]) -> Array:
        """The chunk that begins there, whole. Rules 18 and 19."""
        assert self._chunks is not None
        if self._last is not None and self._last[0] == offset:
            return self._last[1]
        size = self.dtype.itemsize
        for length in self._chunks:
            size *= length
        stored = self._places.get(offset)
        if stored is None:
            refuse(18, f"/{self.path} lacks the chunk at {offset}; fetch or make the file again")
        if stored > size + size // 64 + 64:  # deflate is left out where it would not help
            refuse(19, f"/{self.path} stores {stored} bytes for a chunk of {size}")
        skipped, raw = self._item.id.read_direct_chunk(offset)
        chunk = self._decoded(raw, skipped, size).view(self.dtype).reshape(self._chunks)
        self._last = (offset, chunk)
        return chunk

    def _decoded(self, raw: bytes, skipped: int, size: int) -> NDArray[np.uint8]:
        """The filters undone, the last first: fletcher32, deflate, shuffle."""
        applied = [code for i, code in enumerate(self._filters) if not skipped >> i & 1]
        if FLETCHER32 in applied:
            if len(raw) < 4 or fletcher32(raw[:-4]) != int.from_bytes(raw[-4:], "little"):
                refuse(
                    18,
                    f"/{self.path} is damaged (a checksum is wrong); fetch or make the file again",
                )
            raw = raw[:-4]
        if DEFLATE in applied:
            inflater = zlib.decompressobj()
            raw = inflater.decompress(raw, size + 1)
            if len(raw) > size:
                refuse(19, f"/{self.path} has a chunk of {size} bytes that inflates to more")
            if not inflater.eof or inflater.unused_data:
                refuse(
                    18,
                    f"/{self.path} is damaged (a chunk is cut off or has a tail); fetch or make the file again",
                )
        if len(raw) != size:
            refuse(
                18,
                f"/{self.path} is damaged (a chunk has {len(raw)} bytes, not {size}); fetch or make the file again",
            )
        flat = np.frombuffer(raw, np.uint8)
        if (
            SHUFFLE in applied and self.dtype.itemsize > 1
        ):  # byte i of all values, then byte i + 1 of all
            flat = np.ascontiguousarray(flat.reshape(self.dtype.itemsize, -1).T).reshape(-1)
        return flat


def fletcher32(data: bytes) -> int:
    """HDF5's checksum: both sums of the big-endian 16-bit words, modulo 65535. A sum of zero is 65535, except where all words are zero."""
    width = 4096
    words = np.zeros(
        -(-(len(data) + 1) // (2 * width)) * width, ">u2"
    )  # zeros in front change neither sum
    n = (len(data) + 1) // 2
    words[len(words) - n :].view(np.uint8)[: len(data)] = np.frombuffer(data, np.uint8)
    table = words.reshape(-1, width).astype(
        np.float64
    )  # all sums below are integers under 2^53: exact in any order
    one = table.sum(axis=1).astype(np.int64) % 65535
    two = (table @ np.arange(width, 0, -1.0)).astype(np.int64) % 65535
    behind = (
        np.arange(len(table) - 1, -1, -1, dtype=np.int64) * width % 65535
    )  # words after each row
    sum1, sum2 = int(one.sum()) % 65535, int(((two + behind * one) % 65535).sum()) % 65535
    if not words.any():
        return 0
    return (sum2 or 65535) << 16 | (sum1 or 65535)
