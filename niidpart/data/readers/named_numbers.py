"""Columns of a CSV file that hold numbers alone, by their names."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...arithmetic.words import Array
from ...errors import FileFault
from .arrow_values import is_number
from .csv_text import read_csv, read_one_header
from .memory_table import MemoryTable


def read_named_columns(
    files: Sequence[Path],
    numbers: Sequence[str],
    words: Sequence[str] = (),
    missing: Sequence[str] = (),
) -> MemoryTable:
    """Return some columns of CSV files, one file after the other.

    numbers, words: the columns; those of words stay text. missing: what stands for no value.
    FileFault names the file and the column that is not there. Needs pyarrow.
    """
    header = read_one_header(files)
    wanted = [*numbers, *words]
    lacking = [name for name in wanted if name not in header]
    if lacking:
        got = f"{files[0]} has no column {lacking[0]!r}"
        raise FileFault(f"{got}; its columns are {', '.join(header)[:200]}; fetch it again")
    return read_csv(files, header, columns=wanted, words=words, missing=missing)


def read_numbers(table: MemoryTable, name: str, files: Sequence[Path]) -> Array:
    """Return [N] float64 of a column, NaN where it has no value; FileFault where it holds words."""
    column = table.column(name)
    if not is_number(column.type):
        raise FileFault(f"{files[0]}: the column {name!r} holds words; numbers are needed")
    return np.asarray(column.to_numpy(), np.float64)


def read_named_numbers(files: Sequence[Path], names: Sequence[str]) -> dict[str, Array]:
    """Return columns of numbers by name; FileFault where a value is missing."""
    table = read_named_columns(files, names)
    held = {name: read_numbers(table, name, files) for name in names}
    for name, values in held.items():
        if not np.isfinite(values).all():
            raise FileFault(f"{files[0]}: the column {name!r} lacks values; fetch it again")
    return held
