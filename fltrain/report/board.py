"""The leaderboard of a page: a table of evidence whose cells know what they are sorted by."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..evidence.api import EvidenceTable
from ..evidence.layout import lay_out, list_marks
from ..evidence.tables import TableEntry, TableRow
from ..evidence.trial_values import ValueSummary

INTERVAL = "95 % interval"
_WIDTH, _MARGIN = 100, 4  # of the picture of an interval
_NO_VALUES = ValueSummary(0, None, None, None)


@dataclass(frozen=True)
class Whisker:
    """An interval as a picture: where its ends and its middle stand on the scale of all rows."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class BoardCell:
    """A cell. value: what it is sorted by, None for nothing. is_word: whether it is no number."""

    text: str
    value: float | None = None
    is_word: bool = False
    is_best: bool = False
    whisker: Whisker | None = None


@dataclass(frozen=True)
class Board:
    """A leaderboard.

    caption: what the numbers are, where the titles of the columns do not say it. header: a title
    for each column. n_keys: how many columns say what a row is of. marks: what the marks behind
    numbers mean. has_best: whether tests carry that some row is the best.
    """

    title: str
    caption: str
    header: Sequence[str]
    n_keys: int
    rows: Sequence[Sequence[BoardCell]]
    marks: Sequence[str]
    has_best: bool


def build_board(table: EvidenceTable, title: str) -> Board:
    """Return the leaderboard of a table."""
    laid = lay_out(table)
    scale = _find_scale(table) if INTERVAL in laid.header else None
    rows = []
    for number, (row, words) in enumerate(zip(table.rows, laid.lines, strict=True)):
        values = _list_values(row, table, has_intervals=scale is not None)
        cells = []
        for place, (text, value) in enumerate(zip(words, values, strict=True)):
            whisker = None
            if laid.header[place] == INTERVAL:
                whisker = _draw_whisker(row.entries[0], table, scale)
            is_number = isinstance(value, int | float)
            cell = BoardCell(
                text=text,
                value=value if isinstance(value, int | float) else None,
                is_word=place < laid.n_keys and not is_number,
                is_best=(number, place) in laid.bold,
                whisker=whisker,
            )
            cells.append(cell)
        rows.append(cells)
    is_of_columns = len(table.body.columns) > 1 and len(table.measures) == 1
    return Board(
        title=title,
        caption=table.measures[0].title if is_of_columns else "",
        header=laid.header,
        n_keys=laid.n_keys,
        rows=rows,
        marks=list_marks(table),
        has_best=bool(laid.bold),
    )


def leave_out(board: Board, title: str) -> Board:
    """Return a leaderboard without the columns of a title."""
    kept = [place for place, one in enumerate(board.header) if one != title]
    header = [board.header[place] for place in kept]
    rows = []
    for row in board.rows:
        cells = [row[place] for place in kept]
        rows.append(cells)
    return replace(board, header=header, rows=rows)


def _list_values(
    row: TableRow, table: EvidenceTable, *, has_intervals: bool
) -> list[float | str | None]:
    """Return what each cell of a row is sorted by, in the order of `lay_out`."""
    values = [_sort_key(key) for key in row.where.values()]
    for entry in row.entries:
        for place, measure in enumerate(table.measures):
            summary = _NO_VALUES if entry is None else entry.values[measure.title]
            values.append(summary.mean)
            if has_intervals and place == 0:
                interval = summary.interval
                values.append(None if interval is None else interval.low)
    return [*values, row.n]


def _sort_key(key: Any) -> float | str | None:
    """Return what a value of an axis is sorted by: a number as such."""
    if isinstance(key, bool) or not isinstance(key, int | float):
        return str(key)
    return key


def _find_scale(table: EvidenceTable) -> tuple[float, float] | None:
    """Return the ends of all intervals of the first measure, for their pictures."""
    title = table.measures[0].title
    ends = []
    for row in table.rows:
        entry = row.entries[0]
        interval = None if entry is None else entry.values[title].interval
        if interval is not None:
            ends += [interval.low, interval.high]
    if not ends:
        return None
    return min(ends), max(ends)


def _draw_whisker(
    entry: TableEntry | None, table: EvidenceTable, scale: tuple[float, float] | None
) -> Whisker | None:
    if entry is None or scale is None:
        return None
    first = table.measures[0]
    found = entry.values[first.title]
    ends = found.interval
    if ends is None or found.mean is None:
        return None
    return Whisker(
        low=_place_on(scale, ends.low),
        middle=_place_on(scale, found.mean),
        high=_place_on(scale, ends.high),
    )


def _place_on(scale: tuple[float, float], value: float) -> float:
    """Return where a value stands in the picture of intervals."""
    low, high = scale
    reach = high - low
    share = 0.5
    if reach and math.isfinite(reach):
        share = (value - low) / reach
    room = _WIDTH - 2 * _MARGIN
    return round(_MARGIN + room * share, 2)
