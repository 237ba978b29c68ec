"""`DiskImage`: a file that the HDF5 library writes without being told of a disk's faults."""

import os

from ..errors import UsageError
from .limits import MAX_FILE


class DiskImage:
    """A file for h5py to write to, by its handle.

    The library crashes where it cannot finish what it has open. So a fault of the disk is kept
    from it: what is written after it stays in memory, so that the library can close its file, and
    `raise_fault` raises it then. Whoever fills the file looks at `is_over`, and stops.

    Nor may the handler of a signal raise in here. Handlers run in the main thread, so the file is
    filled in another one.
    """

    def __init__(self, handle: int):
        self._handle = handle
        self._is_stopped = False
        self._place = 0
        self._end = 0  # as the library knows it, whatever reached the disk
        self._fault: OSError | UsageError | None = None
        self._kept: list[tuple[int, bytes]] = []  # places and values that did not reach it

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be written: a fault, or `stop` was called."""
        return self._is_stopped or self._fault is not None

    def stop(self) -> None:
        """Tell whoever fills the file, in another thread, to stop."""
        self._is_stopped = True

    def raise_fault(self) -> None:
        """Raise the first fault, if there was one: the disk's, or that no reader takes the file."""
        if self._fault is not None:
            raise self._fault

    def _note(self, error: OSError) -> None:
        if self._fault is not None:
            return
        # A new error, without the frames of this one: they hold the library's memory, which it
        # frees.
        self._fault = OSError(error.errno, error.strerror)

    def _note_size(self, size: int) -> None:
        if self._fault is None:
            self._fault = UsageError(
                f"the split file would have {size} bytes or more, and {MAX_FILE} are allowed "
                "(docs/format.md, rule 2); make it of fewer rows"
            )

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_CUR:
            offset += self._place
        elif whence == os.SEEK_END:
            offset += self._end
        self._place = offset
        return offset

    def tell(self) -> int:
        return self._place

    def write(self, data: bytes | memoryview) -> int:
        raw = memoryview(data).cast("B")
        place, rest = self._place, raw
        if place + len(raw) > MAX_FILE:
            self._note_size(place + len(raw))
        try:
            while rest and self._fault is None:  # a file that nearly fills the disk takes a part
                written = os.pwrite(self._handle, rest, place)
                place += written
                rest = rest[written:]
        except OSError as error:
            self._note(error)
        if rest:
            self._kept.append((place, bytes(rest)))
        self._place += len(raw)
        self._end = max(self._end, self._place)
        return len(raw)

    def readinto(self, buffer: memoryview) -> int:
        target = memoryview(buffer).cast("B")
        start, stop = self._place, self._place + len(target)
        raw = self._read(len(target), start)
        target[: len(raw)] = raw
        target[len(raw) :] = bytes(len(target) - len(raw))
        for place, values in self._kept:
            first, last = max(start, place), min(stop, place + len(values))
            if first < last:
                target[first - start : last - start] = values[first - place : last - place]
        self._place = stop
        return len(target)

    def _read(self, n: int, place: int) -> bytes:
        try:
            return os.pread(self._handle, n, place)
        except OSError as error:
            self._note(error)
            return b""

    def truncate(self, size: int) -> int:
        try:
            if self._fault is None:
                os.ftruncate(self._handle, size)
        except OSError as error:
            self._note(error)
        self._end = size
        return size

    def flush(self) -> None:
        """Do nothing: whoever has the handle syncs it."""
