"""Tables as plain text, no wider than the terminal that shows them."""

import re
import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from .terminal import find_width, to_one_line

_GAP = "  "  # between columns
_LEAST = 17  # letters of a column of text, where there is no room for all
_LEAST_ALONE = 8  # where there is none for a column and the first ones


class _Column(NamedTuple):
    """The cells of a column, its header first, and how many letters it takes."""

    cells: Sequence[str]
    is_right: bool
    width: int


class _CellWrapper(textwrap.TextWrapper):
    """Ends lines at blanks, and behind the commas of a cell's name: lr=0.1,momentum=0.9."""

    wordsep_re = re.compile(r"(\s+)|(?<=,)")


def format_table(
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    n_keys: int = 1,
    width: int | None = None,
    common: Sequence[str] = (),
) -> str:
    """Return a table as text, with numbers to the right. A cell is one line, whatever it holds.

    Where there is no room for it, a column of `common` whose cells are all equal is said once,
    above, and long texts go on in the next line. Where that is not enough, the columns are parted,
    and each part has the first ones before its own. n_keys: how many these are.
    width: letters of a line, those of the terminal unless given.
    """
    columns = _list_columns(header, rows)
    room = find_width() if width is None else width
    if room is None:
        return _format_part(columns)
    said: list[str] = []
    if _add_widths(columns) > room:
        equal = [column for column in columns if column.cells[0] in common and _is_equal(column)]
        columns = [column for column in columns if column not in equal]
        said = _say_equal(equal, room)
    parts = _part(_narrow(columns, room, _LEAST), n_keys, room)
    narrowed = [_format_part(_narrow(part, room, _LEAST_ALONE)) for part in parts]
    return "\n\n".join([*said, *narrowed])


def _is_equal(column: _Column) -> bool:
    """Return whether several rows all have the same in a column."""
    cells = column.cells[1:]
    return len(cells) > 1 and len(set(cells)) == 1


def _say_equal(columns: Sequence[_Column], room: int) -> list[str]:
    """Return what stands above a table for columns with one value; [] where there are none."""
    if not columns:
        return []
    values = ", ".join(f"{name} {value}" for name, value, *_ in (c.cells for c in columns))
    return ["\n".join(["in all rows", *textwrap.wrap(values, room)])]


def format_digits(value: float, digits: int) -> str:
    """Return a number with so many digits that count, zeros too: 0.510 below 0.642."""
    return f"{value:#.{digits}g}".removesuffix(".")


def measure_width(header: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
    """Return how many letters a line of a table has, where there is room for all."""
    return _add_widths(_list_columns(header, rows))


def _list_columns(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[_Column]:
    cells = [list(map(to_one_line, row)) for row in (header, *rows)]
    return [_measure(column) for column in zip(*cells, strict=True)]


def _measure(cells: Sequence[str]) -> _Column:
    is_right = any(map(_is_number, cells[1:]))
    return _Column(cells, is_right, max(map(len, cells)))


def _add_widths(columns: Sequence[_Column]) -> int:
    """Return how many letters a line of these columns has."""
    return sum(column.width for column in columns) + len(_GAP) * (len(columns) - 1)


def _narrow(columns: Sequence[_Column], room: int, least: int) -> list[_Column]:
    """Take letters from the widest texts until the table fits, or none has more than the least."""
    narrowed = list(columns)
    for _ in range(_add_widths(columns) - room):
        texts = [k for k, column in enumerate(narrowed) if not column.is_right]
        widest = max(texts, key=lambda k: narrowed[k].width, default=None)
        if widest is None or narrowed[widest].width <= least:
            break
        narrowed[widest] = narrowed[widest]._replace(width=narrowed[widest].width - 1)
    return narrowed


def _part(columns: Sequence[_Column], n_keys: int, room: int) -> list[list[_Column]]:
    """Return the columns in parts that fit, each with the first columns and one more at least."""
    keys = list(columns[:n_keys])
    parts = [list(keys)]
    for column in columns[n_keys:]:
        is_full = _add_widths([*parts[-1], column]) > room
        if is_full and len(parts[-1]) > n_keys:
            parts.append(list(keys))
        parts[-1].append(column)
    return parts


def _format_part(columns: Sequence[_Column]) -> str:
    lines: list[Sequence[str]] = [[_shorten(column.cells[0], column.width) for column in columns]]
    bodies = [column.cells[1:] for column in columns]
    for row in zip(*bodies, strict=True):
        wrapped = [_wrap(text, column.width) for text, column in zip(row, columns, strict=True)]
        lines += zip_longest(*wrapped, fillvalue="")
    return "\n".join(_join_line(line, columns) for line in lines)


def _join_line(texts: Sequence[str], columns: Sequence[_Column]) -> str:
    padded = [
        text.rjust(column.width) if column.is_right else text.ljust(column.width)
        for text, column in zip(texts, columns, strict=True)
    ]
    return _GAP.join(padded).rstrip()


def _wrap(text: str, width: int) -> list[str]:
    """Return a text in lines of so many letters; a word that is longer goes on in the next."""
    if len(text) <= width:
        return [text]
    return _CellWrapper(width).wrap(text)


def _shorten(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _is_number(text: str) -> bool:
    """Return whether a cell is `12.5`, `-3`, `80%` or `12.5 ± 0.3`."""
    parts = text.replace("%", "").removeprefix("-").split(" ± ")
    return all(part.replace(".", "", 1).isdigit() for part in parts)
