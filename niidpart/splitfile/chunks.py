"""The values of one HDF5 data set, decoded here and not in the C library.

A chunk is inflated to its size and never beyond, and its checksum is checked: the library's filters
inflate whatever a file holds.
"""

import zlib
from functools import cached_property
from typing import Any, NoReturn

import h5py
import numpy as np
from numpy.typing import NDArray

from .faults import DAMAGE, Refused, refuse, shorten_error
from .stored import Array

SHUFFLE = h5py.h5z.FILTER_SHUFFLE
DEFLATE = h5py.h5z.FILTER_DEFLATE
FLETCHER32 = h5py.h5z.FILTER_FLETCHER32
_BLOCK = 1 << 20  # bytes at once of what has no chunks
_AGAIN = "fetch or make the file again"


class H5Array:
    """A data set after the rules on structure (`guard.py`); see `stored.StoredArray`.

    The file has to be open as long as it is read.
    """

    def __init__(self, path: str, item: h5py.Dataset, dtype: np.dtype[Any]):
        self.path, self.dtype, self._item = path, dtype, item
        self.shape: tuple[int, ...] = tuple(int(n) for n in item.shape)
        self._chunks: tuple[int, ...] | None = item.chunks
        creation = item.id.get_create_plist()
        filters = range(creation.get_nfilters())
        self._filters: list[int] = [creation.get_filter(i)[0] for i in filters]
        self.block = self._chunks[0] if self._chunks else self._fit_block()
        # The last chunk is kept: neighbours are often read one after the other.
        self._last: tuple[tuple[int, ...], Array] | None = None

    def _fit_block(self) -> int:
        """Return how many rows have _BLOCK bytes."""
        row_bytes = self.dtype.itemsize
        for length in self.shape[1:]:
            row_bytes *= length
        return max(1, _BLOCK // max(1, row_bytes))

    def rows(self, start: int, stop: int) -> Array:
        """Return rows start..stop-1, checksums checked."""
        try:
            if self._chunks is None:
                got: Array = self._item[start:stop]
                return got.astype(self.dtype, copy=False)
            return self._assemble(start, stop, self._chunks)
        except (*DAMAGE, zlib.error) as error:
            message = f"/{self.path} is damaged ({shorten_error(error)}); {_AGAIN}"
            raise Refused(18, message) from error

    def _assemble(self, start: int, stop: int, chunks: tuple[int, ...]) -> Array:
        out = np.empty((stop - start, *self.shape[1:]), self.dtype)
        high = chunks[0]
        for top in range(start - start % high, stop, high):  # chunks that overlap start..stop-1
            first, last = max(top, start), min(top + high, stop)
            target = out[first - start : last - start]
            inside = slice(first - top, last - top)  # of the chunk
            if len(chunks) == 1:
                target[:] = self._read_chunk((top,))[inside]
            else:
                self._assemble_row(target, top, inside, chunks[1])
        return out

    def _assemble_row(self, target: Array, top: int, inside: slice, wide: int) -> None:
        """Fill rows from the chunks that begin at row `top`, which stand next to each other."""
        n_columns = self.shape[1]
        for left in range(0, n_columns, wide):
            width = min(wide, n_columns - left)  # the last chunk reaches beyond the array
            chunk = self._read_chunk((top, left))
            target[:, left : left + width] = chunk[inside, :width]

    @cached_property
    def _places(self) -> dict[tuple[int, ...], int]:
        """Stored bytes of each chunk, by where it begins."""
        places: dict[tuple[int, ...], int] = {}

        def note(info: Any) -> None:
            places[tuple(info.chunk_offset)] = int(info.size)

        self._item.id.chunk_iter(note)
        return places

    def _read_chunk(self, offset: tuple[int, ...]) -> Array:
        """Return the chunk that begins there, whole. Refuses what breaks rules 18 and 19."""
        assert self._chunks is not None
        if self._last is not None and self._last[0] == offset:
            return self._last[1]
        size = self.dtype.itemsize
        for length in self._chunks:
            size *= length
        stored = self._places.get(offset)
        if stored is None:
            refuse(18, f"/{self.path} lacks the chunk at {offset}; {_AGAIN}")
        if stored > size + size // 64 + 64:  # deflate is left out where it would not help
            refuse(19, f"/{self.path} stores {stored} bytes for a chunk of {size}")
        skipped, raw = self._item.id.read_direct_chunk(offset)
        flat = self._decode(raw, skipped, size)
        chunk = flat.view(self.dtype).reshape(self._chunks)
        self._last = (offset, chunk)
        return chunk

    def _decode(self, raw: bytes, skipped: int, size: int) -> NDArray[np.uint8]:
        """Undo the filters, the last first: fletcher32, deflate, shuffle."""
        applied = []
        for i, code in enumerate(self._filters):
            if not skipped >> i & 1:  # a bit of the mask says that the chunk goes without it
                applied.append(code)
        if FLETCHER32 in applied:
            raw = self._strip_checksum(raw)
        if DEFLATE in applied:
            raw = self._inflate(raw, size)
        if len(raw) != size:
            self._refuse_damaged(f"a chunk has {len(raw)} bytes, not {size}")
        flat = np.frombuffer(raw, np.uint8)
        width = self.dtype.itemsize
        if SHUFFLE in applied and width > 1:  # byte i of all values, then byte i + 1 of all
            by_value = flat.reshape(width, -1).T
            flat = np.ascontiguousarray(by_value).reshape(-1)
        return flat

    def _strip_checksum(self, raw: bytes) -> bytes:
        body, stated = raw[:-4], int.from_bytes(raw[-4:], "little")
        if len(raw) < 4 or fletcher32(body) != stated:
            self._refuse_damaged("a checksum is wrong")
        return body

    def _inflate(self, raw: bytes, size: int) -> bytes:
        inflater = zlib.decompressobj()
        inflated = inflater.decompress(raw, size + 1)
        if len(inflated) > size:
            refuse(19, f"/{self.path} has a chunk of {size} bytes that inflates to more")
        if not inflater.eof or inflater.unused_data:
            self._refuse_damaged("a chunk is cut off or has a tail")
        return inflated

    def _refuse_damaged(self, how: str) -> NoReturn:
        refuse(18, f"/{self.path} is damaged ({how}); {_AGAIN}")


def fletcher32(data: bytes) -> int:
    """Return HDF5's checksum: two sums over the big-endian 16-bit words, modulo 65535.

    The second is the sum of the running first. A sum of zero is 65535, except where all words are
    zero.
    """
    width = 4096
    n = (len(data) + 1) // 2  # words
    n_rows = -(-(len(data) + 1) // (2 * width))
    words = np.zeros(n_rows * width, ">u2")  # zeros in front change neither sum
    tail = words[len(words) - n :].view(np.uint8)
    tail[: len(data)] = np.frombuffer(data, np.uint8)
    if not words.any():
        return 0
    # All sums below are integers under 2^53: exact in float64, in any order.
    table = words.reshape(n_rows, width).astype(np.float64)
    one = table.sum(axis=1).astype(np.int64) % 65535
    times = np.arange(width, 0, -1.0)  # that a word of a row counts in its running sum
    two = (table @ times).astype(np.int64) % 65535
    rows_behind = np.arange(n_rows - 1, -1, -1, dtype=np.int64)
    words_behind = rows_behind * width % 65535  # a row's sum counts once for each of these
    sum1 = int(one.sum()) % 65535
    all_two = (two + words_behind * one) % 65535
    sum2 = int(all_two.sum()) % 65535
    return (sum2 or 65535) << 16 | (sum1 or 65535)
