"""Tables in comma-separated text."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..data import Array, Data, DataSource, from_columns
from ..data.readers.csv_text import NumberColumns, read_header, read_texts
from ..data.readers.files import TestFile, digest_files, find_companion
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
    require_one_test_set,
)
from ..errors import FileFault


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
    """A CSV file with a header (.tsv: tabs; plain, .gz, .bz2 or .xz), float64 [N, D].

    Features are made of all columns that are not used otherwise, unless `features` or `drop` says
    which; they have to be numbers, and are read when they are asked for.

    Parameters
    ----------
    root : path
        The file.
    label, group : str
        The columns of the classes and of the groups.
    features, drop : str, optional
        The columns to make features of, or those to leave out of them.
    test_file : str, optional
        Another file in its folder, the test set; it has the same columns.
    test_column : str, optional
        The column that says which rows are the test set.
    """
    require_one_test_set(test_file, test_column)
    files = _find_files(Path(root), test_file)
    header = _read_one_header(files)
    require_column(label, header, "label")
    require_column(group, header, "group")
    require_column(test_column, header, "test-column")
    used = (label, group, test_column)
    columns = choose_feature_columns(header, used, features, drop)
    texts = _read_columns(files, header, [name for name in used if name is not None])
    n = len(texts[0][label])
    if not n:
        raise FileFault(f"{files[0]} holds a header and no rows")
    y = _parse_over_files(texts, label)
    groups = None if group is None else _parse_over_files(texts, group)
    is_test = np.arange(len(y)) >= n  # the rows of the second file, if there is one
    if test_column is not None:
        is_test = parse_test_column(texts[0][test_column], test_column)
    train_rows, test_rows = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    numbers = NumberColumns(files, header, columns)
    has_test = len(test_rows) > 0
    return from_columns(
        y[train_rows],
        numbers.make_features(train_rows) if columns else None,
        y[test_rows] if has_test else None,
        numbers.make_features(test_rows) if columns and has_test else None,
        groups=None if groups is None else groups[train_rows],
        test_groups=groups[test_rows] if groups is not None and has_test else None,
        content_sha256=digest_files([[file] for file in files]),
    )


def _find_files(path: Path, test_file: str | None) -> list[Path]:
    """Return the file, and that of the test set if there is one."""
    if not path.is_file():
        advice = "give the path of a CSV file with a header"
        raise FileNotFoundError(f"there is no file {path}; {advice}")
    if not test_file:
        return [path]
    return [path, find_companion(path, test_file, "test_file")]


def _read_one_header(files: Sequence[Path]) -> list[str]:
    header = read_header(files[0])
    for file in files[1:]:
        if read_header(file) != header:
            raise FileFault(f"{file} has other columns than {files[0]}")
    return header


def _read_columns(
    files: Sequence[Path], header: Sequence[str], names: Sequence[str]
) -> list[dict[str, Array]]:
    """Return of each file {column: texts [n]}."""
    asked = list(dict.fromkeys(names))
    places = [header.index(name) for name in asked]
    return [dict(zip(asked, read_texts(file, places), strict=True)) for file in files]


def _parse_over_files(texts: Sequence[dict[str, Array]], name: str) -> Array:
    """Return the labels of one column of all files, one after the other."""
    return parse_labels(np.concatenate([columns[name] for columns in texts]), name)


ENTRY = DataSource(load=csv_table)
