"""Small files of numbers without a header, a row a line, as UCI has many of them."""

import csv
import io
from pathlib import Path

import numpy as np

from ...arithmetic.words import Array
from ...errors import FileFault
from .budget import Budget
from .files import open_packed, read_whole

_TIMES = 40  # bytes that python takes for a byte of text, as lists of numbers
_SHOWN = 40  # characters of a value in an error


def read_number_rows(path: Path, n_columns: int, missing: str) -> Array:
    """Return [N, n_columns] float64 of comma-separated lines, NaN for the word `missing`.

    Empty lines are passed over. FileFault names the file and the row.
    """
    budget = Budget.of_files([path])
    with open_packed(path) as file:
        stored = read_whole(file, budget.room)
    budget.require(_TIMES * len(stored), "its numbers")
    text = io.StringIO(stored.decode("utf-8", "surrogateescape"), newline="")
    try:
        rows = [row for row in csv.reader(text, strict=True) if row]
    except csv.Error as error:
        raise FileFault(f"{path} is no comma-separated text ({error}); fetch it again") from error
    if not rows:
        raise FileFault(f"{path} holds no rows; fetch it again")
    return np.array([_read_row(path, i, row, n_columns, missing) for i, row in enumerate(rows)])


def _read_row(path: Path, place: int, row: list[str], n_columns: int, missing: str) -> list[float]:
    if len(row) != n_columns:
        got = f"{path} has {len(row)} values in row {place} (of 0, 1, ...)"
        raise FileFault(f"{got}; {n_columns} are needed")
    values = []
    for text in row:
        word = text.strip()
        if word == missing:
            values.append(np.nan)
            continue
        try:
            number = float(word)
        except ValueError as error:
            what = f"{word[:_SHOWN]!a} in row {place}"
            raise FileFault(f"{path} holds {what}; numbers or {missing!r} are needed") from error
        values.append(number)
    return values
