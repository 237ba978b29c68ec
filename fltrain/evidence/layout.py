"""A table as words: header and lines, whatever they are written as."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..runs.metric_names import format_value
from .api import EvidenceTable
from .families import ComparisonFamily
from .measures import RunMeasure
from .place_words import name_column, write_place
from .tables import TableEntry, TableRow
from .trial_values import ValueSummary

_NOTHING = "-"
_MARKS = {"own": "*", "fine-tuned": "+"}
_MARK_WORDS = {
    "own": "of parties' own models",
    "fine-tuned": "of models that parties have fine-tuned",
}


@dataclass(frozen=True)
class TableLayout:
    """A table as words.

    header, lines: of one length each. n_keys: how many columns say what a line is of. bold: places,
    line and column, of the best values, where tests carry that they are.
    """

    header: Sequence[str]
    lines: Sequence[Sequence[str]]
    n_keys: int
    bold: frozenset[tuple[int, int]]


def lay_out(table: EvidenceTable) -> TableLayout:
    """Return a table as words: mean ± sample deviation, and the interval of the first measure."""
    has_intervals = _has_intervals(table)
    header = [*table.body.by]
    for where in table.body.columns:
        column = name_column(where)
        for place, measure in enumerate(table.measures):
            header.append(_title(column, measure, table))
            if has_intervals and place == 0:
                header.append("95 % interval")
    lines = []
    for row in table.rows:
        keys = _write_keys(row)
        values = _write_row(row, table)
        lines.append([*keys, *values, _write_count(row)])
    n_keys = len(table.body.by)
    bold = _find_bold(table)
    return TableLayout([*header, "n"], lines, n_keys, bold)


def _has_intervals(table: EvidenceTable) -> bool:
    """Return whether intervals stand in a column: of one column of runs, where some row has one."""
    if len(table.body.columns) > 1:
        return False
    title = table.measures[0].title
    for row in table.rows:
        entry = row.entries[0]
        if entry is not None and entry.values[title].interval:
            return True
    return False


def _title(column: str, measure: RunMeasure, table: EvidenceTable) -> str:
    if not column:
        return measure.title
    if len(table.measures) == 1:
        return column
    return f"{column} {measure.title}"


def _write_keys(row: TableRow) -> list[str]:
    return [write_place(value) for value in row.where.values()]


def _write_row(row: TableRow, table: EvidenceTable) -> list[str]:
    has_intervals = _has_intervals(table)
    words = []
    for entry in row.entries:
        for place, measure in enumerate(table.measures):
            value = _NOTHING if entry is None else write_value(entry, measure)
            words.append(value)
            if has_intervals and place == 0:
                interval = _NOTHING if entry is None else _write_interval(entry, measure)
                words.append(interval)
    return words


def write_value(entry: TableEntry, measure: RunMeasure) -> str:
    """Return mean ± deviation, with the mark of whose models it is of."""
    found = entry.values[measure.title]
    n_runs = len(entry.records)
    if found.mean is None:
        # Some runs never get to what others reach: how many did is what there is to say.
        is_reached = measure.is_cost and found.n
        return f"({found.n} of {n_runs})" if is_reached else _NOTHING
    words = write_number(measure, found.mean)
    is_lone = n_runs == 1
    if measure.name == "rounds" and is_lone and entry.n == 0:
        (run,) = entry.records
        return f"{words}/{run.rounds_asked}"
    is_told = not measure.is_cost or found.std != 0
    if found.std is not None and is_told:
        deviation = write_number(measure, found.std)
        words = f"{words} ± {deviation}"
    if not measure.is_of_parties:
        return words
    mark = _MARKS.get(entry.party_models or "", "")
    return words + mark


def _write_interval(entry: TableEntry, measure: RunMeasure) -> str:
    interval = entry.values[measure.title].interval
    if interval is None:
        return _NOTHING
    low = write_number(measure, interval.low)
    high = write_number(measure, interval.high)
    return f"{low} .. {high}"


def write_number(measure: RunMeasure, value: float) -> str:
    """Return a number of a measure: shares in percent, rounds as they are."""
    if measure.is_share:
        percent = 100 * value
        return f"{percent:.2f}"
    if not measure.is_cost:
        return format_value(measure.title, value)
    is_of_rounds = measure.name in ("rounds", "best-round")
    is_derived = measure.title.startswith("rounds:")
    if not is_of_rounds and not is_derived:
        return f"{value:.2f}"
    is_whole = value == round(value)
    return f"{value:.0f}" if is_whole else f"{value:.1f}"


def _write_count(row: TableRow) -> str:
    """Return the trials of a row: those of each entry, or how many of all are done."""
    if row.n < row.cells:
        return f"{row.n} of {row.cells}"
    there = [entry for entry in row.entries if entry is not None]
    asked = {len(entry.records) for entry in there}
    if len(asked) == 1:
        (n_runs,) = asked
        return str(n_runs)
    return str(row.n)


def list_marks(table: EvidenceTable) -> list[str]:
    """Return what the marks of a table mean, in a line; [] where there are none."""
    if not any(measure.is_of_parties for measure in table.measures):
        return []
    used = {placed.entry.party_models for placed in table.body.list_entries()}
    said = []
    for kind, words in _MARK_WORDS.items():
        if kind in used:
            said.append(f"{_MARKS[kind]} {words}")
    if not said:
        return []
    said.append("the others are of the models that they are served")
    return ["; ".join(said)]


def _find_bold(table: EvidenceTable) -> frozenset[tuple[int, int]]:
    """Return where the best of a column stands, if it is claimed to be better than all others."""
    found = set()
    n_keys = len(table.body.by)
    width = len(table.measures)
    if _has_intervals(table):
        width += 1
    for place, where in enumerate(table.body.columns):
        labels = [row.label for row in table.rows if row.entries[place] is not None]
        best = find_best_row(table.families, name_column(where), labels)
        first = n_keys + place * width
        for number, row in enumerate(table.rows):
            if best and row.label == best:
                found.add((number, first))
    return frozenset(found)


def find_best_row(families: Sequence[ComparisonFamily], column: str, labels: Sequence[str]) -> str:
    """Return which row of a column is claimed to be better than each other one; "" for none."""
    beaten: dict[str, set[str]] = {}
    for family in families:
        if family.column != column:
            continue
        for one in family.comparisons:
            if one.better:
                others = beaten.setdefault(one.better, set())
                others.add(one.worse)
    n_others = len(labels) - 1
    for label, others in beaten.items():
        if len(others) == n_others:
            return label
    return ""


def describe_summary(found: ValueSummary) -> dict[str, float | int | str | None]:
    """Return the values of trials for machines."""
    interval = found.interval
    return {
        "n": found.n,
        "mean": found.mean,
        "std": found.std,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "interval": None if interval is None else interval.kind,
    }
