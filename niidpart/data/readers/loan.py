"""A Python file that Arrow reads: lent, and had back before the reading ends."""

import threading
import traceback
import weakref
from types import TracebackType
from typing import Any, Protocol, Self

_PATIENCE = 5.0  # seconds; Arrow's threads let go within milliseconds


class _Readable(Protocol):
    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""


class _LentFile:
    """What Arrow's threads hold: nobody else does, so its end tells that they have let go."""

    closed = False

    def __init__(self, file: _Readable):
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        return self._file.read(size)


class Loan:
    """Lends a file to Arrow; it ends when Arrow's threads have let go of it.

    They read ahead, and may do so a moment after the last row was had. A thread that lets go of
    something of Python's while the interpreter ends would abort the process.
    """

    def __init__(self, file: _Readable):
        self._file = file
        self._is_back = threading.Event()
        self._is_back.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The frames of an error would hold what was lent.
        traceback.clear_frames(trace)
        self._is_back.wait(_PATIENCE)

    def lend(self) -> Any:
        """Return the file as Arrow takes it, for one reader."""
        import pyarrow as pa

        lent = _LentFile(self._file)
        self._is_back.clear()
        weakref.finalize(lent, self._is_back.set)
        return pa.PythonFile(lent, mode="r")
