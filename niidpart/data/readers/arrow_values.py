"""Columns of Arrow tables as arrays. pyarrow is imported when it is used."""

from typing import Any

import numpy as np

from ...arithmetic.words import Array
from ...errors import FileFault, UsageError
from .table import require_short_texts


def read_column(column: Any, name: str) -> Array:
    """Return [n] numbers, booleans or text of a column.

    Text is python's own, each distinct one once, so that one long text takes its own memory alone.
    """
    import pyarrow as pa

    require_no_empty(column.null_count, name)
    # Numbers may be stored by their distinct values too; then the values are what counts.
    is_dictionary = pa.types.is_dictionary(column.type)
    if is_dictionary and not _is_text(column.type.value_type):
        column = column.cast(column.type.value_type)
        is_dictionary = False
    if is_number(column.type):
        numbers: Array = column.to_numpy()
        return numbers
    if is_dictionary:
        return _read_texts(column, name)
    if _is_text(column.type):
        return _read_texts(column.dictionary_encode(), name)
    needed = "integers, booleans or text are needed"
    raise UsageError(f"the column {name!r} is of type {column.type}; {needed}")


def _read_texts(column: Any, name: str) -> Array:
    """Return [n] python's texts of a column that is stored as numbers of distinct ones."""
    import pyarrow as pa

    whole = column.unify_dictionaries().combine_chunks()
    chunks = [whole]
    if isinstance(whole, pa.ChunkedArray):
        chunks = whole.chunks
    texts = []
    for chunk in chunks:
        require_no_nulls(chunk.dictionary, name)
        distinct = list_texts(chunk.dictionary, name)
        require_short_texts(distinct, name, "")
        lookup = np.array(distinct or [""], object)  # no width: one text may be very long
        texts.append(lookup[np.asarray(chunk.indices)])
    if not texts:
        return np.zeros(0, object)
    return np.concatenate(texts)


def list_texts(values: Any, name: str) -> list[Any]:
    """Return an array of texts as python's; FileFault names the column where one is no UTF-8."""
    try:
        texts: list[Any] = values.to_pylist()
    except UnicodeDecodeError as error:
        got = f"the column {name!r} holds text that is not UTF-8 ({error.object[:20]!r})"
        raise FileFault(f"{got}; write it as UTF-8") from error
    return texts


def list_shared(values: Any) -> list[Any]:
    """Return a chunk as python's values; those that are stored by their number are one object.

    A text or an image that a file holds once, and names a million times, takes its memory once.
    """
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        distinct = values.dictionary.to_pylist()
        numbers = values.indices.to_pylist()
        return [None if number is None else distinct[number] for number in numbers]
    if pa.types.is_struct(values.type):
        names = [field.name for field in values.type]
        columns = [list_shared(column) for column in values.flatten()]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    plain: list[Any] = values.to_pylist()
    return plain


def require_no_empty(n: int, name: str) -> None:
    """Raise UsageError where a column has n empty values, unless that is none."""
    if n:
        raise UsageError(f"the column {name!r} has {n} empty values; fill or drop these rows first")


def require_no_nulls(values: Any, name: str) -> None:
    """Raise UsageError where a column has empty values."""
    if values.null_count:
        advice = "fill or drop these rows first"
        raise UsageError(f"the column {name!r} has empty values; {advice}")


def count_missing_values(column: Any) -> int:
    """Return how many values of a column are empty or NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc

    n = int(column.null_count)
    if pa.types.is_floating(column.type):
        n += pc.sum(pc.is_nan(column)).as_py() or 0
    return n


def stack_lists(column: Any, name: str) -> Array:
    """Return [n, ...] of a column of lists of one length, nested or not.

    uint8 and floats unchanged, other integers as float64.
    """
    shape = [len(column)]
    values = _unwrap(column.combine_chunks())
    while is_list(values.type):
        values, length = _open_lists(values, name)
        shape.append(length)
    require_no_nulls(values, name)
    numbers = np.asarray(values.to_numpy(zero_copy_only=False))
    x = numbers.reshape(shape)
    if x.dtype == np.uint8 or x.dtype.kind == "f":
        return x
    return x.astype(np.float64)


def _open_lists(values: Any, name: str) -> tuple[Any, int]:
    """Return (the values in all lists, the length of each list)."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(values.type):
        lengths = {values.type.list_size}
    else:
        offsets = np.asarray(values.offsets)
        lengths = set(np.diff(offsets).tolist())
    if len(lengths) > 1 or values.null_count:
        shown = " and ".join(str(length) for length in sorted(lengths)[:3])
        got = f"the column {name!r} holds lists of {shown} values"
        raise UsageError(f"{got}; all must be of one length")
    length = 0  # of no lists
    if lengths:
        [length] = lengths
    return _unwrap(values.flatten()), length


def _unwrap(values: Any) -> Any:
    """Return one plain array of a chunked one, or of an extension type such as Array2D."""
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values.type, pa.BaseExtensionType):
        return values.storage
    return values


def is_number(kind: Any) -> bool:
    """Return whether the values of a type are numbers, or true and false."""
    import pyarrow as pa

    is_real = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return bool(is_real or pa.types.is_boolean(kind))


def is_list(kind: Any) -> bool:
    """Return whether the values of a type are lists."""
    import pyarrow as pa

    is_variable = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return bool(is_variable or pa.types.is_fixed_size_list(kind))


def is_list_of_numbers(kind: Any) -> bool:
    """Return whether the values of a type are lists of numbers, nested or not."""
    import pyarrow as pa

    if not is_list(kind):
        return False
    while is_list(kind):
        kind = strip_extension(kind.value_type)
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def strip_extension(kind: Any) -> Any:
    """Return the type that an extension type is stored as; others come back unchanged."""
    return getattr(kind, "storage_type", kind)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
