"""Digests of many bytes, which tell how far they are."""

from io import BufferedReader
from typing import Protocol

import numpy as np

from ..arithmetic.words import Array
from .progress import tell_bytes

_PIECE = 1 << 24  # bytes of an array at a time
_BUFFER = 1 << 18  # bytes of a file: of many small files each has a buffer


class Digest(Protocol):
    """What hashlib makes."""

    def update(self, data: memoryview, /) -> None:
        """Take bytes in."""
        ...


def digest_values(digest: Digest, values: Array, what: str) -> None:
    """Update a digest with the bytes of an array. what: they are, for who listens."""
    flat = np.ascontiguousarray(values).reshape(-1)
    raw = flat.view(np.uint8).data
    for start in range(0, len(raw), _PIECE):
        piece = raw[start : start + _PIECE]
        digest.update(piece)
        tell_bytes(f"digesting {what}", start + len(piece), len(raw))


class FileDigester:
    """Digests files, one after the other, and tells how far all of them are.

    what: they are, for who listens. n_bytes: of all files.
    """

    def __init__(self, what: str, n_bytes: int):
        self._what, self._n_bytes = what, n_bytes
        self._n_done = 0

    def update(self, digest: Digest, file: BufferedReader) -> None:
        """Update a digest with what is left of a file."""
        buffer = bytearray(_BUFFER)
        view = memoryview(buffer)
        while n := file.readinto(buffer):
            digest.update(view[:n])
            self._n_done += n
            tell_bytes(f"digesting {self._what}", self._n_done, self._n_bytes)
