"""Tables: a row for each choice of some axes, a column for each of others, numbers in both.

Runs that differ in seeds alone are the trials of one entry: mean, sample deviation, n, interval.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from niidpart.errors import UsageError
from niidpart.registry import did_you_mean

from .intervals import MeanInterval, compute_interval
from .measures import PartyModels, RunMeasure, find_party_models
from .records import RUN_AXIS, SETTING_AXIS, SPLIT_AXIS, RunRecord, list_axes, list_varied


@dataclass(frozen=True)
class ValueSummary:
    """The values of trials.

    Parameters
    ----------
    n : int
        Runs that have the value.
    mean, std : float or None
        None where one of the runs that were asked for has none, unless parts were asked for; the
        sample deviation (over n - 1) also for a single run.
    interval : MeanInterval or None
        Of the mean; None where there is no deviation, or runs differ in more than seeds.
    """

    n: int
    mean: float | None
    std: float | None
    interval: MeanInterval | None


@dataclass(frozen=True)
class TableEntry:
    """What stands in one row and one column.

    Parameters
    ----------
    records : sequence of RunRecord
        The runs that were asked for, whatever became of them.
    values : mapping of str to ValueSummary
        By title of the measure.
    mixed : sequence of str
        Axes besides seeds on which the runs differ: their spread is no luck.
    """

    records: Sequence[RunRecord]
    values: Mapping[str, ValueSummary]
    mixed: Sequence[str] = ()

    @property
    def n(self) -> int:
        """The runs that are done."""
        return sum(record.state == "done" for record in self.records)

    def count_lost(self, measure: RunMeasure) -> int:
        """Return how many runs have no value of a measure."""
        return len(self.records) - self.values[measure.title].n

    @property
    def failed(self) -> list[RunRecord]:
        """The runs that failed."""
        return [record for record in self.records if record.state == "failed"]

    @property
    def party_models(self) -> PartyModels | None:
        """Whose models the numbers at home are of."""
        known = [find_party_models(record.history) for record in self.records if record.history]
        return known[0] if known else None


@dataclass(frozen=True)
class TableRow:
    """A row: what it is of, and an entry for each column, None where nothing was asked for.

    Parameters
    ----------
    where : mapping
        Its values on the axes of the rows.
    entries : sequence of TableEntry or None
    first : str
        The title of the measure that `mean` and `std` are of.
    """

    where: Mapping[str, Any]
    entries: Sequence[TableEntry | None]
    first: str

    @property
    def label(self) -> str:
        """What it is called where rows are compared: "fedprox mu=0.1"."""
        return describe_place(self.where)

    @property
    def n(self) -> int:
        """The runs that are done, in all columns."""
        return sum(entry.n for entry in self.entries if entry is not None)

    @property
    def cells(self) -> int:
        """The runs that were asked for, in all columns."""
        return sum(len(entry.records) for entry in self.entries if entry is not None)

    @property
    def mean(self) -> float | None:
        """Of the first measure in the first column; None where a run is missing."""
        return None if self._summary is None else self._summary.mean

    @property
    def std(self) -> float | None:
        """The sample deviation that goes with `mean`."""
        return None if self._summary is None else self._summary.std

    @property
    def _summary(self) -> ValueSummary | None:
        entry = self.entries[0]
        return None if entry is None else entry.values.get(self.first)


@dataclass(frozen=True)
class TableAxes:
    """By what rows and columns differ, and which runs are in it.

    by: () for all axes that vary, but seeds and those of the columns. where: axis -> the values, as
    text, of which a run must have one. partial: whether entries with missing runs have a mean.
    failed_as: what a run that failed counts as, where it has no result; None for nothing.
    """

    by: Sequence[str] = ()
    columns: Sequence[str] = ()
    where: Mapping[str, Sequence[str]] = field(default_factory=dict)
    partial: bool = False
    failed_as: float | None = None


@dataclass(frozen=True)
class TableBody:
    """Rows and columns. columns: the values of each on the axes of the columns; {} for the one."""

    by: Sequence[str]
    column_axes: Sequence[str]
    columns: Sequence[Mapping[str, Any]]
    rows: Sequence[TableRow]


def build_body(
    records: Sequence[RunRecord], measures: Sequence[RunMeasure], axes: TableAxes
) -> TableBody:
    """Return the rows and columns of some runs. UsageError for an axis that there is not."""
    known = list_axes(records)
    for axis in (*axes.by, *axes.columns):
        _require_axis(axis, known)
    by = list(axes.by) or _choose_rows(records, axes.columns)
    columns = _group(records, axes.columns)
    rows = []
    for members in _group(records, by).values():
        inside = _group(members, axes.columns)
        entries = [
            _summarise_runs(inside[key], measures, axes, (*by, *axes.columns))
            if key in inside
            else None
            for key in columns
        ]
        where = {axis: members[0].where.get(axis) for axis in by}
        rows.append(TableRow(where, entries, measures[0].title))
    told = [{axis: one[0].where.get(axis) for axis in axes.columns} for one in columns.values()]
    return TableBody(by, list(axes.columns), told, rows)


def choose_records(
    records: Sequence[RunRecord], where: Mapping[str, Sequence[str]]
) -> list[RunRecord]:
    """Return the runs that have one of the values on each axis. UsageError where none has."""
    known = list_axes(records)
    chosen = list(records)
    for axis, wanted in where.items():
        _require_axis(axis, known)
        there = {write_place(record.where.get(axis)) for record in chosen}
        chosen = [one for one in chosen if write_place(one.where.get(axis)) in wanted]
        if not chosen:
            values = ", ".join(sorted(there)[:8])
            raise UsageError(f"no run has {axis}={','.join(wanted)}; there are: {values}")
    return chosen


def describe_place(where: Mapping[str, Any]) -> str:
    """Return values on axes in words: names as they are, other values with their axes."""
    words = []
    for axis, value in where.items():
        if value is None:
            continue
        is_name = axis in ("algorithm", SPLIT_AXIS, RUN_AXIS, SETTING_AXIS)
        words.append(write_place(value) if is_name else f"{axis}={write_place(value)}")
    return " ".join(words) or "all"


def write_place(value: Any) -> str:
    """Return a value on an axis as text."""
    if value is None:
        return "-"
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _require_axis(axis: str, known: Sequence[str]) -> None:
    if axis not in known:
        raise UsageError(f"there is no axis {axis!r}; {did_you_mean(axis, known)}")


def _choose_rows(records: Sequence[RunRecord], columns: Sequence[str]) -> list[str]:
    """Return the axes of the rows: the label of runs that are no study, else all that vary."""
    if SETTING_AXIS in list_axes(records) and not columns:
        return [SETTING_AXIS]
    varied = [axis for axis in list_varied(records) if axis not in columns]
    without = [axis for axis in varied if axis != SPLIT_AXIS]
    # A split is called by its recipe, which other axes may have told already.
    if len(_group(records, [*without, *columns])) == len(_group(records, [*varied, *columns])):
        varied = without
    return varied or ["algorithm"]


def _group(records: Sequence[RunRecord], axes: Sequence[str]) -> dict[str, list[RunRecord]]:
    """Return the runs by their values on some axes, in the order of the first ones."""
    groups: dict[str, list[RunRecord]] = {}
    for record in records:
        key = repr([record.where.get(axis) for axis in axes])
        groups.setdefault(key, []).append(record)
    return groups


def _summarise_runs(
    records: Sequence[RunRecord],
    measures: Sequence[RunMeasure],
    axes: TableAxes,
    told_apart: Sequence[str],
) -> TableEntry:
    mixed = _list_mixed(records, told_apart)
    # Of a run by itself there is something to tell before it ends.
    is_each = RUN_AXIS in told_apart
    # What counts as an accuracy is no loss: of other measures a failed run has no value.
    kind = (measures[0].is_share, measures[0].is_loss)
    values = {}
    for measure in measures:
        if is_each:
            known = [_read_finite(measure, record) for record in records]
        else:
            is_alike = (measure.is_share, measure.is_loss) == kind
            known = read_values(records, measure, axes.failed_as if is_alike else None)
        values[measure.title] = _summarise_values(known, axes.partial, is_mixed=bool(mixed))
    return TableEntry(records, values, mixed)


def _list_mixed(records: Sequence[RunRecord], told_apart: Sequence[str]) -> list[str]:
    """Return the axes besides seeds on which the runs of an entry differ."""
    settings = {record.where.get(SETTING_AXIS) for record in records}
    if len(settings) == 1 and None not in settings:
        return []  # an older folder may lack an option, and is of the same setting all the same
    return [axis for axis in list_varied(records) if axis not in told_apart]


def read_values(
    records: Sequence[RunRecord], measure: RunMeasure, failed_as: float | None
) -> list[float | None]:
    """Return the value of each run; None for one that is not done, or has none."""
    values: list[float | None] = []
    for record in records:
        if record.state == "done":
            values.append(_read_finite(measure, record))
        elif record.state == "failed" and not measure.is_cost:
            values.append(failed_as)
        else:
            values.append(None)
    return values


def _read_finite(measure: RunMeasure, record: RunRecord) -> float | None:
    """Return the value of a run; None also for what is no number, of which there is no mean."""
    value = measure.read(record)
    return value if value is not None and math.isfinite(value) else None


def _summarise_values(
    values: Sequence[float | None], partial: bool, *, is_mixed: bool
) -> ValueSummary:
    known = [value for value in values if value is not None]
    can_tell = bool(known) and (partial or len(known) == len(values))
    if not can_tell:
        return ValueSummary(len(known), None, None, None)
    interval = None if is_mixed else compute_interval(known)
    deviation = statistics.stdev(known) if len(known) > 1 else None
    return ValueSummary(len(known), statistics.fmean(known), deviation, interval)
