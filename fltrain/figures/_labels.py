"""What series are called: settings by their axes, single runs by their seeds too."""

from collections.abc import Sequence

from ..evidence.place_words import describe_place, write_place
from ..evidence.records import SEED_AXES, SETTING_AXIS, RunRecord, is_varied, list_varied
from ..evidence.tables import TableBody, TableRow
from ._words import FigureWords


def label_rows(body: TableBody, words: FigureWords) -> list[tuple[str, str]]:
    """Return what each row is called, and its setting, with which it shares a colour."""
    if not words.each:
        return [(row.label, row.label) for row in body.rows]
    records = [_find_first(row) for row in body.rows]
    axes = words.by or list_varied(records) or ("algorithm",)
    labels = []
    for record in records:
        setting = _name_setting(record, axes)
        seeds = _describe_seeds(record, records)
        labels.append((f"{setting}{seeds}", setting))
    return _number_equal(labels)


def _name_setting(record: RunRecord, axes: Sequence[str]) -> str:
    """Return what a run shares with the others of its setting."""
    where = record.where
    named = where.get(SETTING_AXIS)
    if named:
        return str(named)
    return describe_place({axis: where.get(axis) for axis in axes})


def _find_first(row: TableRow) -> RunRecord:
    """Return the first run of a row."""
    return next(entry.records[0] for entry in row.entries if entry is not None)


def _describe_seeds(record: RunRecord, among: Sequence[RunRecord]) -> str:
    """Return the seeds of a run that are others elsewhere, one where they are all alike."""
    values = {}
    for axis in SEED_AXES:
        if is_varied(axis, among):
            values[axis] = write_place(record.where.get(axis))
    distinct = set(values.values())
    if len(distinct) == 1:
        return f" seed={distinct.pop()}"
    return "".join(f" {axis}={value}" for axis, value in values.items())


def _number_equal(labels: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the labels, equal ones with #2, #3, ..."""
    seen: dict[str, int] = {}
    numbered = []
    for label, setting in labels:
        seen[label] = seen.get(label, 0) + 1
        more = f" #{seen[label]}" if seen[label] > 1 else ""
        numbered.append((f"{label}{more}", setting))
    return numbered
