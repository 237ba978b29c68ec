"""Columns of Arrow tables become labels, groups and features. Used by `parquet` and `hf`, which import pyarrow when they are used."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ...arithmetic.rng import Ints
from ...errors import FileFault, UsageError
from .. import Data, check_features, from_columns
from ..columns import Features, resolve_rows
from .files import digest_files
from .images import Decoder
from .table import (
    choose_feature_columns,
    parse_labels,
    parse_names,
    parse_test_column,
    require_column,
    require_short,
)


class ArrowTable(Protocol):
    """A table on the disk. n: rows. files: what it is made of, in order. described: features of columns as Hugging Face writes them."""

    n: int
    files: list[Path]
    described: Mapping[str, Any]

    @property
    def schema(self) -> Any: ...  # pyarrow.Schema

    def column(self, name: str) -> Any: ...  # pyarrow.ChunkedArray [n]

    def batches(
        self, rows: Ints, columns: Sequence[str]
    ) -> Iterator[tuple[Ints, Any]]: ...  # (places in `rows`, pyarrow.Table of these rows)


class ColumnChoice(NamedTuple):
    """Which columns are what, as the options say it."""

    label: str
    group: str | None = None
    features: str | None = None
    drop: str | None = None
    test_column: str | None = None
    size: int | None = None
    channels: int | None = None
    checksum: bool = True


def load_tables(
    train: ArrowTable, test: ArrowTable | None, choice: ColumnChoice, base: Path, revision: str = ""
) -> Data:
    """The data set of one table or two. base: the folder that images which are named by a path have to lie in."""
    names = list(train.schema.names)
    for name, option in (
        (choice.label, "label"),
        (choice.group, "group"),
        (choice.test_column, "test-column"),
    ):
        if name is not None:
            require_column(name, names, option)
    if test is not None and (
        lacking := [
            n for n in (choice.label, choice.group) if n is not None and n not in test.schema.names
        ]
    ):
        raise FileFault(f"the test set lacks the column {lacking[0]!r}")
    y, class_names = read_labels(train, choice.label)
    y_test, _ = read_labels(test, choice.label) if test is not None else (None, None)
    if y_test is not None and class_names and (y_test == -1).all():
        test = y_test = None  # published without its labels
    if class_names and (y == -1).any():
        raise UsageError(
            f"{int((y == -1).sum())} of {len(y)} examples have no label (-1 in the column {choice.label!r}); drop these rows first"
        )
    groups = None if choice.group is None else _plain(train.column(choice.group), choice.group)
    test_groups = (
        None
        if choice.group is None or test is None
        else _plain(test.column(choice.group), choice.group)
    )
    read = _Reader(train, choice, base)
    content = digest_files([train.files, *([test.files] if test else [])], choice.checksum)
    if choice.test_column is None:
        return from_columns(
            y,
            read.of(train),
            y_test,
            read.of(test) if test is not None else None,
            groups=groups,
            test_groups=test_groups,
            class_names=class_names,
            content_sha256=content,
            revision=revision,
        )
    away = parse_test_column(
        _plain(train.column(choice.test_column), choice.test_column), choice.test_column
    )
    kept, gone = np.flatnonzero(~away), np.flatnonzero(away)
    return from_columns(
        y[kept],
        read.of(train, kept),
        y[gone],
        read.of(train, gone),
        groups=None if groups is None else groups[kept],
        test_groups=None if groups is None else groups[gone],
        class_names=class_names,
        content_sha256=content,
        revision=revision,
    )


def read_labels(table: ArrowTable, name: str) -> tuple[NDArray[Any], list[str] | None]:
    """(labels [n], names of the labels 0, 1, ... where the table says them) of a column."""
    described = table.described.get(name)
    names = (
        described.get("names")
        if isinstance(described, dict) and described.get("_type") == "ClassLabel"
        else None
    )
    labels = _plain(table.column(name), name)
    if labels.dtype.kind == "f":
        labels = parse_labels(labels.astype(str), name)
    if names is None or labels.dtype.kind not in "iu":
        return labels, None
    return labels, [str(n) for n in names]


def _plain(column: Any, name: str) -> NDArray[Any]:
    """[n] numbers, booleans or text of a column; text as python's, each distinct one once, so that one long text takes its own memory alone."""
    import pyarrow as pa

    if column.null_count:
        raise UsageError(
            f"the column {name!r} has {column.null_count} empty values; fill or drop these rows first"
        )
    if pa.types.is_dictionary(column.type) and not _is_text(column.type.value_type):
        column = column.cast(column.type.value_type)
    if (
        pa.types.is_integer(column.type)
        or pa.types.is_floating(column.type)
        or pa.types.is_boolean(column.type)
    ):
        numbers: NDArray[Any] = column.to_numpy()
        return numbers
    if pa.types.is_dictionary(column.type) or _is_text(column.type):
        whole = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        whole = whole.unify_dictionaries().combine_chunks()
        parts = whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]
        if any(part.dictionary.null_count for part in parts):
            raise UsageError(f"the column {name!r} has empty values; fill or drop these rows first")
        for part in parts:
            require_short(part.dictionary.to_pylist(), name, "")
        words = [
            np.array(part.dictionary.to_pylist() or [""], object)[np.asarray(part.indices)]
            for part in parts
        ]
        return np.concatenate(words) if words else np.zeros(0, object)
    raise UsageError(
        f"the column {name!r} is of type {column.type}; integers, booleans or text are needed"
    )


class _Reader:
    """Features of rows of tables of one kind: all with the columns, the shape and the type of the training set's first row."""

    def __init__(self, train: ArrowTable, choice: ColumnChoice, base: Path):
        self._train, self._choice, self._base = train, choice, base

    def of(self, table: ArrowTable, rows: Ints | None = None) -> Features | None:
        """The features of a table, or of some rows of it; None where it has nothing but labels."""
        if not self.columns:
            return None
        n = table.n if rows is None else len(rows)
        return lambda asked: self._read(
            table, resolve_rows(asked, n) if rows is None else rows[resolve_rows(asked, n)]
        )

    @cached_property
    def columns(self) -> list[str]:
        """What features are made of: what was asked for, else the one column of images, else all that is left."""
        names, c = list(self._train.schema.names), self._choice
        images = [n for n in names if self._is_image(n)]
        if (
            c.features is None
            and len(images) == 1
            and images[0] not in parse_names(c.drop, names, "drop")
        ):
            return images
        columns = choose_feature_columns(
            names, (c.label, c.group, c.test_column), c.features, c.drop
        )
        if len(columns) > 1 and (wide := [n for n in columns if self._kind(n) != "number"]):
            what = (
                "are not all plain numbers" if len(images) < 2 else "hold several columns of images"
            )
            raise UsageError(
                f"the features {', '.join(columns[:12])} {what} ({wide[0]!r} is {self._type(wide[0])}); say which with --features or --drop"
            )
        if columns and self._kind(columns[0]) == "other":
            raise UsageError(
                f"the column {columns[0]!r} is {self._type(columns[0])}; numbers, lists of numbers or images are needed; see --features"
            )
        return columns

    def _type(self, name: str) -> Any:
        kind = self._train.schema.field(name).type
        return getattr(kind, "storage_type", kind)

    def _is_image(self, name: str) -> bool:
        import pyarrow as pa

        kind, described = self._type(name), self._train.described.get(name)
        encoded = pa.types.is_struct(kind) and {
            kind.field(i).name for i in range(kind.num_fields)
        } == {"bytes", "path"}
        said = isinstance(described, dict) and described.get("_type")
        return said == "Image" or (
            (not said or said == "Value")
            and (encoded or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
        )

    def _kind(self, name: str) -> Literal["image", "number", "list", "other"]:
        import pyarrow as pa

        kind = self._type(name)
        if self._is_image(name):
            return "image"
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
            return "number"
        depth = 0
        while _is_list(kind):
            kind, depth = getattr(kind.value_type, "storage_type", kind.value_type), depth + 1
        return (
            "list"
            if depth and (pa.types.is_integer(kind) or pa.types.is_floating(kind))
            else "other"
        )

    @cached_property
    def _decoder(self) -> Decoder:
        def first() -> bytes | Path:
            [(_, batch)] = self._train.batches(np.zeros(1, np.int64), self.columns)
            return self._encoded(batch.column(0))[0]

        return Decoder(first, self._choice.size, self._choice.channels)

    @cached_property
    def _empty(self) -> NDArray[Any]:
        """[0, ...] of the shape and type that every example has."""
        [(_, batch)] = self._train.batches(np.zeros(1, np.int64), self.columns)
        return self._decoded(batch, ["the first example"])[:0]

    def _read(self, table: ArrowTable, rows: Ints) -> NDArray[Any]:
        out = np.empty((len(rows), *self._empty.shape[1:]), self._empty.dtype)
        for places, batch in table.batches(rows, self.columns):
            x = self._decoded(batch, [f"the image of row {r}" for r in rows[places]])
            if x.shape[1:] != out.shape[1:]:
                raise UsageError(
                    f"the column {self.columns[0]!r} holds lists of {list(x.shape[1:])} and, in the first row, of {list(out.shape[1:])}"
                )
            out[places] = x
        return out

    def _decoded(self, batch: Any, names: Sequence[str]) -> NDArray[Any]:
        kind = self._kind(self.columns[0])
        if kind == "image":
            return self._decoder(self._encoded(batch.column(0)), names)
        parts = [batch.column(name) for name in self.columns]
        for name, part in zip(self.columns, parts, strict=True):
            if part.null_count:
                raise UsageError(
                    f"the column {name!r} has empty values; fill or drop these rows first"
                )
        if kind == "list":
            x = _stacked(self.columns[0], parts[0])
        else:
            small = all(str(part.type) in ("float", "halffloat") for part in parts)
            x = np.stack(
                [
                    np.asarray(part.to_numpy(), np.float32 if small else np.float64)
                    for part in parts
                ],
                axis=1,
            )
        check_features("data", x, np.zeros(len(x), np.int64))
        return x

    def _encoded(self, column: Any) -> list[bytes | Path]:
        """Images as bytes, or as paths inside the folder of the data."""
        out: list[bytes | Path] = []
        for value in column.to_pylist():
            raw = value.get("bytes") if isinstance(value, dict) else value
            if isinstance(raw, bytes):
                out.append(raw)
                continue
            path = (
                Path(self._base, str(value.get("path")))
                if isinstance(value, dict) and value.get("path")
                else None
            )
            if (
                path is None
                or ".." in path.parts
                or not path.is_relative_to(self._base)
                or not path.is_file()
            ):
                raise FileFault(
                    f"the column {self.columns[0]!r} names the image {value if path is None else path}, which is not in {self._base}"
                )
            out.append(path)
        return out


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _stacked(name: str, column: Any) -> NDArray[Any]:
    """[n, ...] of a column of lists of one length: uint8 and floats as they are, other integers as float64."""
    import pyarrow as pa

    values, shape = column.combine_chunks(), [len(column)]
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    while True:
        values = values.storage if isinstance(values.type, pa.BaseExtensionType) else values
        if not _is_list(values.type):
            break
        inner = values.flatten()
        lengths = (
            {values.type.list_size}
            if pa.types.is_fixed_size_list(values.type)
            else set(np.diff(np.asarray(values.offsets)).tolist())
        )
        if len(lengths) > 1 or values.null_count:
            raise UsageError(
                f"the column {name!r} holds lists of {' and '.join(map(str, sorted(lengths)[:3]))} values; all must be of one length"
            )
        values = inner
        shape.append(lengths.pop() if lengths else 0)
    if values.null_count:
        raise UsageError(f"the column {name!r} has empty values; fill or drop these rows first")
    x = np.asarray(values.to_numpy(zero_copy_only=False)).reshape(shape)
    return x if x.dtype == np.uint8 or x.dtype.kind == "f" else x.astype(np.float64)
