"""A split file that is open: its arrays, read when they are asked for, until it is closed."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ..arithmetic.words import Array
from ..errors import UsageError
from .faults import Refused, SplitError
from .layout import select_under
from .stored import Content, Look, StoredArray, read_values


class OpenFile:
    """The content of one file. Faults that are found on reading carry its path."""

    def __init__(self, path: Path, content: Content, stack: ExitStack):
        self.path, self.arrays = path, content.arrays
        self._stack, self._is_open = stack, True

    def close(self) -> None:
        self._is_open = False
        self._stack.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Guard a read: UsageError after `close`, SplitError where the file breaks a rule."""
        if not self._is_open:
            raise UsageError(f"{self.path} was closed; open it again to read from it")
        try:
            yield
        except Refused as refused:
            raise SplitError(self.path, [refused.fault]) from refused.__cause__

    def read(self, path: str, look: Look | None = None) -> Array:
        """Return all values of an array. KeyError where there is no such array."""
        array = self.arrays[path]
        with self.reading():
            return read_values(array, look)


class LazyArrays(Mapping[str, Array]):
    """The arrays of one group of a file, by name: each is read when it is asked for.

    checks: of some of them, for each block that is read.
    """

    def __init__(self, file: OpenFile, prefix: str, checks: Mapping[str, Look]):
        self._file, self._prefix, self._checks = file, prefix, checks
        self._stored: dict[str, StoredArray] = select_under(prefix, file.arrays)

    def __getitem__(self, name: str) -> Array:
        if name not in self._stored:
            raise KeyError(name)
        return self._file.read(self._prefix + name, self._checks.get(name))

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._stored))

    def __len__(self) -> int:
        return len(self._stored)

    def at(self, row: int) -> "LazyRow":
        """Return the values of one row of each array."""
        return LazyRow(self._file, self._stored, self._checks, row)


class LazyRow(Mapping[str, object]):
    """One row of each array of a group: a value is read when it is asked for, with its chunk."""

    def __init__(
        self,
        file: OpenFile,
        stored: Mapping[str, StoredArray],
        checks: Mapping[str, Look],
        row: int,
    ):
        self._file, self._stored, self._checks, self._row = file, stored, checks, row

    def __getitem__(self, name: str) -> object:
        array, look = self._stored[name], self._checks.get(name)
        with self._file.reading():
            values = array.rows(self._row, self._row + 1)
            if look is not None:
                look(self._row, values)
            value: object = values[0]
            return value

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._stored))

    def __len__(self) -> int:
        return len(self._stored)
