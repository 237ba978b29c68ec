"""Tables in comma-separated text."""

import contextlib
import csv
import io
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..data import Data, from_columns
from ..data.readers.files import TestFile, digest_files, find_companion, open_packed
from ..data.readers.table import (
    Drop,
    FeatureColumns,
    Group,
    Label,
    TestColumn,
    choose_feature_columns,
    parse_labels,
    parse_test_column,
    require_column,
    require_short,
)
from ..errors import FileFault, UsageError

__all__ = ["csv_table"]

_BLOCK = 1 << 14  # rows that are turned into numbers at a time


def csv_table(
    root: str | Path,
    *,
    label: Label = "label",
    group: Group = None,
    features: FeatureColumns = None,
    drop: Drop = None,
    test_file: TestFile = None,
    test_column: TestColumn = None,
) -> Data:
    """A CSV file with a header (.tsv: tabs; plain, .gz, .bz2 or .xz), float64 [N, D]. root: the file.

    Features are made of all columns that are not used otherwise, unless `features` or `drop` says which; they have to be numbers, and are read when
    they are asked for. The file of the test set has the same columns.
    """
    path = Path(root)
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no file {path}; give the path of a CSV file with a header"
        )
    if test_file is not None and test_column is not None:
        raise UsageError(
            "test_file names another file and test_column a column; give one of the two"
        )
    header = _header(path)
    for name, option in ((label, "label"), (group, "group"), (test_column, "test-column")):
        if name is not None:
            require_column(name, header, option)
    columns = choose_feature_columns(header, (label, group, test_column), features, drop)
    files = [path] + ([find_companion(path, test_file, "test_file")] if test_file else [])
    if len(files) > 1 and _header(files[1]) != header:
        raise FileFault(f"{files[1]} has other columns than {path}")
    asked = list(dict.fromkeys(name for name in (label, group, test_column) if name is not None))
    read = [
        dict(zip(asked, _text(f, [header.index(name) for name in asked]), strict=True))
        for f in files
    ]
    if not len(read[0][label]):
        raise FileFault(f"{path} holds a header and no rows")
    y = parse_labels(np.concatenate([r[label] for r in read]), label)
    groups = (
        None if group is None else parse_labels(np.concatenate([r[group] for r in read]), group)
    )
    n, total = len(read[0][label]), len(y)
    test = (
        parse_test_column(read[0][test_column], test_column)
        if test_column
        else np.arange(total) >= n
    )
    train_rows, test_rows = np.flatnonzero(~test), np.flatnonzero(test)
    numbers = _Numbers(tuple(files), tuple(header), tuple(columns))
    return from_columns(
        y[train_rows],
        numbers.at(train_rows) if columns else None,
        y[test_rows] if len(test_rows) else None,
        numbers.at(test_rows) if columns and len(test_rows) else None,
        groups=None if groups is None else groups[train_rows],
        test_groups=groups[test_rows] if groups is not None and len(test_rows) else None,
        content_sha256=digest_files([[f] for f in files]),
    )


class _Numbers:
    """The feature columns of the files, one after the other; parsed at the first request and then kept."""

    def __init__(self, files: Sequence[Path], header: Sequence[str], columns: Sequence[str]):
        self._files, self._header, self._columns = files, header, columns
        self._all = lru_cache(1)(self._parse)

    def at(self, of: Ints) -> Any:
        return lambda rows: self._all()[of[rows]]

    def _parse(self) -> NDArray[Any]:
        at = [self._header.index(name) for name in self._columns]
        return np.concatenate([self._blocks(path, at) for path in self._files])

    def _blocks(self, path: Path, at: Sequence[int]) -> NDArray[Any]:
        done = []
        for first, block in _rows(path, len(self._header)):
            columns = list(zip(*block, strict=True))
            done.append(
                np.stack(
                    [self._column(path, first, columns[i], self._header[i]) for i in at], axis=1
                )
            )
        return np.concatenate(done) if done else np.zeros((0, len(at)))

    def _column(self, path: Path, first: int, words: Sequence[str], name: str) -> NDArray[Any]:
        try:
            numbers = np.fromiter(map(float, words), np.float64, len(words))
        except ValueError:
            bad = next((word for word in words if not _is_number(word)), words[0])
            what = "an empty value" if not bad.strip() else f"the text {bad[:40]!r}"
            raise UsageError(
                f"{path}: the column {name!r} holds {what}; features are numbers: leave it out with --drop {name}"
            ) from None
        if np.isnan(numbers).any():
            raise UsageError(
                f"{path}: the column {name!r} holds NaN in rows {first}..{first + len(words) - 1}; fill or drop these rows first"
            )
        return numbers


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _header(path: Path) -> list[str]:
    with _parsed(path) as rows:
        names = [name.strip() for name in next(rows, [])]
    if not names or "" in names or len(set(names)) < len(names):
        raise FileFault(
            f"{path} begins with {names[:8]}; a header that gives each column a name of its own is needed"
        )
    return names


def _text(path: Path, at: Sequence[int]) -> list[NDArray[Any]]:
    """These columns of a file, as python's texts [N], each distinct one once; none longer than a label or a group is."""
    header, once = _header(path), dict[str, str]()
    done: list[list[str]] = [[] for _ in at]
    for _, block in _rows(path, len(header)):
        for column, k in zip(done, at, strict=True):
            words = [row[k].strip() for row in block]
            require_short(words, header[k], f"{path}: ")
            column += [once.setdefault(word, word) for word in words]
    return [np.array(column, object) for column in done]


def _rows(path: Path, n_columns: int) -> Iterator[tuple[int, list[list[str]]]]:
    """(row number, rows) of a file, without its header; empty lines are passed over."""
    with _parsed(path) as lines:
        rows = filter(None, lines)
        next(rows, None)
        start = 0
        while block := list(islice(rows, _BLOCK)):
            if set(map(len, block)) != {n_columns}:
                row, got = next(
                    (start + i, len(values))
                    for i, values in enumerate(block)
                    if len(values) != n_columns
                )
                raise FileFault(
                    f"{path} has {got} values in row {row} (of 0, 1, ...), and {n_columns} columns"
                )
            yield start, block
            start += len(block)


@contextlib.contextmanager
def _parsed(path: Path) -> Iterator[Iterator[list[str]]]:
    """All rows of a file. FileFault that names it where it is no CSV in UTF-8."""
    plain = [end for end in path.suffixes if end not in (".gz", ".bz2", ".xz")]
    try:
        with open_packed(path) as f, io.TextIOWrapper(f, "utf-8-sig", newline="") as text:
            yield csv.reader(
                text, delimiter="\t" if plain and plain[-1] == ".tsv" else ",", strict=True
            )
    except (csv.Error, UnicodeDecodeError) as error:
        raise FileFault(f"{path} cannot be read as CSV in UTF-8 ({error})") from error
