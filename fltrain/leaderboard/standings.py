"""Entries of one task beside each other: rows of all of them, paired with FedAvg's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ..evidence.comparing import Comparison, JudgeRules
from ..evidence.families import ComparisonWords, compare_rows
from ..evidence.layout import write_value
from ..evidence.measures import MeasureWords, RunMeasure, list_measures
from ..evidence.reading import RecordGroup, read_groups
from ..evidence.records import SEED_AXES, RunRecord
from ..evidence.tables import TableAxes, TableBody, TableEntry, TableRow, build_body
from ..studies.folder.roster import Roster
from ..studies.folder.study_folder import StudyFolder
from .planning import BASELINE, MANDATORY
from .task import LeaderboardTask
from .verifying import BADGES, Badge

Division = Literal["default", "tuned"]

DIVISIONS: tuple[Division, ...] = ("default", "tuned")
_ROW = "row"


@dataclass(frozen=True)
class BoardRow:
    """A row of a task.

    Parameters
    ----------
    label : str
        The algorithm, and the entry that it stands in.
    entry : str
    badge : Badge
    value : str
        Mean and deviation, as tables write them.
    mean : float or None
        None where runs are missing.
    n : int
    comparison : Comparison or None
        With FedAvg's row; None for that row itself.
    """

    label: str
    entry: str
    badge: Badge
    value: str
    mean: float | None
    n: int
    comparison: Comparison | None


@dataclass(frozen=True)
class TaskBoard:
    """The rows of a task in one division, best mean first.

    missing: mandatory rows that no entry has: then nothing is compared.
    """

    task: LeaderboardTask
    division: Division
    measure: RunMeasure
    rows: Sequence[BoardRow]
    missing: Sequence[str]


def rank_entries(
    task: LeaderboardTask,
    entries: Mapping[str, Path],
    badges: Mapping[str, Badge],
    division: Division,
) -> TaskBoard | None:
    """Return the rows of a task, or None where no entry has any in this division.

    entries: folders by name.
    """
    records, owners, group = _gather_rows(entries, division)
    if group is None or not records:
        return None
    asked = MeasureWords(show=(task.shows,))
    (measure,) = list_measures(asked, records, group.derive)
    body = build_body(records, [measure], TableAxes(by=(_ROW,)))
    found = {_read_label(row): row.entries[0] for row in body.rows}
    missing = _list_missing(list(found), division)
    believed = {label: badges.get(owners[label]) for label in found}
    baseline = _find_baseline(found, measure, believed)
    compared: dict[str, Comparison] = {}
    if baseline and not missing:
        compared = _compare_entries(body, measure, owners, baseline)
    rows = []
    for label, entry in found.items():
        if entry is None:
            continue
        row = _make_row(label, entry, measure)
        row = replace(
            row,
            entry=owners[label],
            badge=believed[label] or "claimed",
            comparison=compared.get(label),
        )
        rows.append(row)
    sign = 1 if measure.is_loss else -1
    rows.sort(key=lambda row: (row.mean is None, sign * (row.mean or 0.0)))
    return TaskBoard(task, division, measure, rows, missing)


def _gather_rows(
    entries: Mapping[str, Path], division: Division
) -> tuple[list[RunRecord], dict[str, str], RecordGroup | None]:
    """Return the runs of a division under the labels of their rows, and the entry of each label.

    The last group that was read comes along: what follows from runs is derived as it says.
    """
    records: list[RunRecord] = []
    owners: dict[str, str] = {}
    group: RecordGroup | None = None
    for entry, folder in entries.items():
        specs = _read_specs(folder)
        for group in read_groups([folder]):
            for record in _choose_division(group.records, division):
                algorithm = specs.get(record.name, record.where["algorithm"])
                label = f"{algorithm} ({entry})"
                owners[label] = entry
                records.append(_relabel(record, label))
    return records, owners, group


def _read_label(row: TableRow) -> str:
    return row.label.removeprefix(f"{_ROW}=")


def _compare_entries(
    body: TableBody, measure: RunMeasure, owners: Mapping[str, str], baseline: str
) -> dict[str, Comparison]:
    """Return how each row stands beside the baseline. The rows of an entry are a family.

    Over all rows of a task, ten pairs could carry no claim of anybody from 26 rows on: whoever
    hands in rows that are worth nothing would take the others' claims away.
    """
    words = ComparisonWords(JudgeRules(), against=f"{_ROW}={baseline}")
    rows = {_read_label(row): row for row in body.rows}
    by_entry: dict[str, list[TableRow]] = {}
    for label, row in rows.items():
        if label != baseline:
            by_entry.setdefault(owners[label], []).append(row)
    compared: dict[str, Comparison] = {}
    for own in by_entry.values():
        beside = replace(body, rows=[rows[baseline], *own])
        for family in compare_rows(beside, measure, words, None):
            for one in family.comparisons:
                label = one.first.removeprefix(f"{_ROW}=")
                compared[label] = one
    return compared


def _read_specs(folder: Path) -> dict[str, str]:
    """Return what trained each run, by its name: an algorithm of one's own is no built-in one."""
    roster = Roster(StudyFolder.open(folder))
    specs = {}
    for name, cell in roster.list_cells().items():
        specs[name] = str(cell.asked["algorithm"])
    return specs


def _choose_division(records: Sequence[RunRecord], division: Division) -> list[RunRecord]:
    """Return the runs of a division: those of winners, or those with the defaults."""
    wanted = division == "tuned"
    chosen = []
    for one in records:
        is_tuned = one.where.get("tuned") == "tuned"
        if is_tuned == wanted:
            chosen.append(one)
    return chosen


def _relabel(record: RunRecord, label: str) -> RunRecord:
    where = {_ROW: label}
    for axis in SEED_AXES:
        if axis in record.where:
            where[axis] = record.where[axis]
    return replace(record, where=where)


def _find_row(labels: Sequence[str], algorithm: str) -> str:
    """Return the first row of an algorithm; "" where there is none."""
    for label in labels:
        if _name_algorithm(label) == algorithm:
            return label
    return ""


def _name_algorithm(label: str) -> str:
    return label.partition(" ")[0]


def _find_baseline(
    found: Mapping[str, TableEntry | None],
    measure: RunMeasure,
    badges: Mapping[str, Badge | None],
) -> str:
    """Return the row of FedAvg that all others are compared with; "" where there is none.

    Of several the one that is believed most, and then the best: an entry brings its own, and a poor
    one would flatter whatever stands beside it.
    """
    sign = -1 if measure.is_loss else 1

    def count_merit(label: str) -> tuple[int, bool, float]:
        entry, badge = found[label], badges[label]
        mean = None
        if entry is not None:
            mean = entry.values[measure.title].mean
        believed = 0
        if badge in BADGES:
            believed = BADGES.index(badge)
        return believed, mean is not None, sign * (mean or 0.0)

    rows = [label for label in found if _name_algorithm(label) == BASELINE]
    return max(rows, key=count_merit, default="")


def _list_missing(labels: Sequence[str], division: Division) -> list[str]:
    wanted = MANDATORY if division == "default" else (BASELINE,)
    return [name for name in wanted if not _find_row(labels, name)]


def _make_row(label: str, found: TableEntry, measure: RunMeasure) -> BoardRow:
    """Return a row as its runs say; whose it is, and what is believed of it, comes later."""
    summary = found.values[measure.title]
    return BoardRow(
        label=label,
        entry="",
        badge="claimed",
        value=write_value(found, measure),
        mean=summary.mean,
        n=summary.n,
        comparison=None,
    )
