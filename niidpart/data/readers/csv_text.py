"""Rows and columns of CSV text. Features are parsed when they are first asked for."""

import contextlib
import csv
import io
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...arithmetic.rng import Ints
from ...errors import FileFault, UsageError
from ..rows import Array, Features
from .files import PACKED, open_packed
from .table import require_short_texts

_BLOCK = 1 << 14  # rows that are turned into numbers at a time


class NumberColumns:
    """The feature columns of the files, one file after the other.

    They are parsed at the first request and then kept.
    """

    def __init__(self, files: Sequence[Path], header: Sequence[str], columns: Sequence[str]):
        self._files = files
        self._n_columns = len(header)
        self._places = [(header.index(name), name) for name in columns]

    def make_features(self, rows: Ints) -> Features:
        """Return the features of some rows, numbered over all files."""

        def read_features(asked: Ints | slice) -> Array:
            return self._numbers[rows[asked]]

        return read_features

    @cached_property
    def _numbers(self) -> Array:
        """[N, D] float64 of all files."""
        return np.concatenate([self._parse_file(path) for path in self._files])

    def _parse_file(self, path: Path) -> Array:
        blocks = [np.zeros((0, len(self._places)))]
        for block in _read_blocks(path, self._n_columns):
            texts = list(zip(*block.rows, strict=True))  # of each column
            columns = []
            for i, name in self._places:
                numbers = _parse_column(path, block.first, texts[i], name)
                columns.append(numbers)
            blocks.append(np.stack(columns, axis=1))
        return np.concatenate(blocks)


def _parse_column(path: Path, first: int, words: Sequence[str], name: str) -> Array:
    """Return float64 [n] of the words of a column, which begins at row `first`."""
    try:
        numbers = np.array([float(word) for word in words], np.float64)
    except ValueError:
        bad = next(word for word in words if not _is_number(word))
        what = "an empty value"
        if bad.strip():
            what = f"the text {bad[:40]!r}"
        advice = f"features are numbers: leave it out with --drop {name}"
        raise UsageError(f"{path}: the column {name!r} holds {what}; {advice}") from None
    if np.isnan(numbers).any():
        where = f"rows {first}..{first + len(words) - 1}"
        got = f"{path}: the column {name!r} holds NaN in {where}"
        raise UsageError(f"{got}; fill or drop these rows first")
    return numbers


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def read_header(path: Path) -> list[str]:
    """Return the names of the columns; FileFault unless each has one of its own."""
    with _parse_csv(path) as rows:
        names = [name.strip() for name in next(rows, [])]
    is_complete = bool(names) and "" not in names
    if not is_complete or len(set(names)) < len(names):
        needed = "a header that gives each column a name of its own is needed"
        raise FileFault(f"{path} begins with {names[:8]}; {needed}")
    return names


def read_texts(path: Path, places: Sequence[int]) -> list[Array]:
    """Return the columns at these places of a file, as python's texts [N].

    Each distinct text is kept once, and none is longer than a label or a group is.
    """
    header = read_header(path)
    once: dict[str, str] = {}
    columns: list[list[str]] = [[] for _ in places]
    for block in _read_blocks(path, len(header)):
        for column, k in zip(columns, places, strict=True):
            words = [row[k].strip() for row in block.rows]
            require_short_texts(words, header[k], f"{path}: ")
            # A column of classes holds few distinct texts: each is kept once, not once a row.
            column += [once.setdefault(word, word) for word in words]
    return [np.array(column, object) for column in columns]


class _TextBlock(NamedTuple):
    """Some rows of a file. first: the number of the first of them, 0, 1, ..."""

    first: int
    rows: list[list[str]]


def _read_blocks(path: Path, n_columns: int) -> Iterator[_TextBlock]:
    """Yield the rows of a file without its header; empty lines are passed over."""
    with _parse_csv(path) as lines:
        rows = filter(None, lines)
        next(rows, None)
        first = 0
        while block := list(islice(rows, _BLOCK)):
            widths = {len(row) for row in block}
            if widths != {n_columns}:
                raise _build_ragged(path, first, block, n_columns)
            yield _TextBlock(first, block)
            first += len(block)


def _build_ragged(
    path: Path, first: int, block: Sequence[Sequence[str]], n_columns: int
) -> FileFault:
    lengths = np.array([len(values) for values in block])
    i = int((lengths != n_columns).argmax())
    got = f"{path} has {lengths[i]} values in row {first + i} (of 0, 1, ...)"
    return FileFault(f"{got}, and {n_columns} columns")


@contextlib.contextmanager
def _parse_csv(path: Path) -> Iterator[Iterator[list[str]]]:
    """Open all rows of a file; FileFault names it where it is no CSV in UTF-8."""
    endings = [ending for ending in path.suffixes if ending not in PACKED]
    delimiter = "\t" if endings and endings[-1] == ".tsv" else ","
    try:
        with (
            open_packed(path) as file,
            io.TextIOWrapper(file, "utf-8-sig", newline="") as text,
        ):
            yield csv.reader(text, delimiter=delimiter, strict=True)
    except (csv.Error, UnicodeDecodeError) as error:
        raise FileFault(f"{path} cannot be read as CSV in UTF-8 ({error})") from error
