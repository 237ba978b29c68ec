"""Data sets of Arrow tables, for `parquet` and `hf`."""

from pathlib import Path

import numpy as np

from ...errors import FileFault, UsageError
from ..construction import from_columns
from ..record import Data
from ..rows import Array
from .arrow_features import FeatureReader
from .arrow_table import ArrowTable, ColumnChoice
from .arrow_values import read_column
from .files import digest_files
from .table import parse_labels, parse_test_column, require_column

_NO_LABEL = -1  # as Hugging Face writes the label of an example that has none


def load_tables(
    train: ArrowTable,
    test: ArrowTable | None,
    choice: ColumnChoice,
    base: Path,
    revision: str = "",
) -> Data:
    """Return the data set of one table or two.

    base: the folder that images which are named by a path have to lie in.
    """
    _require_columns(train, test, choice)
    y, class_names = read_labels(train, choice.label)
    y_test = None
    if test is not None:
        y_test, _ = read_labels(test, choice.label)
        if class_names and (y_test == _NO_LABEL).all():
            test = y_test = None  # published without its labels
    if class_names and (y == _NO_LABEL).any():
        n_unlabelled = int((y == _NO_LABEL).sum())
        got = f"{n_unlabelled} of {len(y)} examples have no label"
        where = f"({_NO_LABEL} in the column {choice.label!r})"
        raise UsageError(f"{got} {where}; drop these rows first")
    groups, test_groups = _read_groups(train, choice), _read_groups(test, choice)
    reader = FeatureReader(train, choice, base)
    # The files as they are read: a test set without labels is no part of the data.
    files = [train.files] if test is None else [train.files, test.files]
    content = digest_files(files, choice.checksum)
    if choice.test_column is None:
        return from_columns(
            y,
            reader.make_features(train),
            y_test,
            None if test is None else reader.make_features(test),
            groups=groups,
            test_groups=test_groups,
            class_names=class_names,
            content_sha256=content,
            revision=revision,
        )
    column = read_column(train.column(choice.test_column), choice.test_column)
    is_test = parse_test_column(column, choice.test_column)
    train_rows, test_rows = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    return from_columns(
        y[train_rows],
        reader.make_features(train, train_rows),
        y[test_rows],
        reader.make_features(train, test_rows),
        groups=None if groups is None else groups[train_rows],
        test_groups=None if groups is None else groups[test_rows],
        class_names=class_names,
        content_sha256=content,
        revision=revision,
    )


def _require_columns(train: ArrowTable, test: ArrowTable | None, choice: ColumnChoice) -> None:
    names = list(train.schema.names)
    require_column(choice.label, names, "label")
    require_column(choice.group, names, "group")
    require_column(choice.test_column, names, "test-column")
    for name in (choice.label, choice.group):
        if test is not None and name is not None and name not in test.schema.names:
            raise FileFault(f"the test set lacks the column {name!r}")


def read_labels(table: ArrowTable, name: str) -> tuple[Array, list[str] | None]:
    """Return (labels [n], names of the labels 0, 1, ... where the table says them) of a column."""
    labels = read_column(table.column(name), name)
    if labels.dtype.kind == "f":
        labels = parse_labels(labels.astype(str), name)
    described = table.described.get(name)
    if not isinstance(described, dict) or described.get("_type") != "ClassLabel":
        return labels, None
    names = described.get("names")
    if names is None or labels.dtype.kind not in "iu":
        return labels, None
    return labels, [str(n) for n in names]


def _read_groups(table: ArrowTable | None, choice: ColumnChoice) -> Array | None:
    if table is None or choice.group is None:
        return None
    return read_column(table.column(choice.group), choice.group)
