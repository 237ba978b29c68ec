"""`fltrain table --paper`: what a study reached beside what the paper prints. Needs no torch."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from niidpart.errors import UsageError

from ...evidence.measures import MeasureWords, list_measures
from ...evidence.reading import RecordGroup, read_study
from ...evidence.tables import TableAxes, TableRow, build_body
from ...runs.metric_names import is_percentage
from ..folder.study_folder import StudyFolder
from ..plans.plan_text import parse_plan_text
from .paper_studies import PaperStudy, Scale, find_study_of
from .printed import PrintedNumber, PrintedTable, read_printed

_WITHIN = 2  # deviations of the paper that ours may be off
# Words that change no printed number: where the data lies, what is kept of a run.
_HARMLESS = ("data_root", "threads", "workers", "memory", "device", "keep")


@dataclass(frozen=True)
class BesideRow:
    """A cell of a paper's table and ours, in the paper's unit.

    where: its values on the axes. mean, std, n, cells: ours; mean is None where cells are missing.
    chosen: the value of the grid that was best on the test set, where the paper prints such.
    printed, printed_std: the paper's. difference: ours less the paper's. deviations: that in the
    paper's deviations. within: whether ours lies within two of them and half a unit of the last
    digit; None where it is not judged.
    """

    where: Mapping[str, Any]
    mean: float | None
    std: float | None
    n: int
    cells: int
    chosen: Any
    printed: float
    printed_std: float | None
    difference: float | None
    deviations: float | None
    within: bool | None


@dataclass(frozen=True)
class BestCount:
    """How often a value of the last axis is the best of all: ours, and as it is printed."""

    value: str
    ours: int
    printed: int


@dataclass(frozen=True)
class BesideTable:
    """A table of a paper beside ours.

    departures: why it is not judged, where it is not. best: how often each value of the last axis
    is best, equals counted for each, where all of them are done.
    """

    study: str
    shows: str
    metric: str
    by: Sequence[str]
    best_of: str
    departures: Sequence[str]
    rows: Sequence[BesideRow]
    best: Sequence[BestCount]

    def to_json(self) -> dict[str, Any]:
        """Return it for machines."""
        return asdict(self)


def set_beside(study: StudyFolder, *, partial: bool = False) -> list[BesideTable]:
    """Return each table that the paper of a study prints, ours beside it.

    Cells of the paper that the plan does not ask for are left out, and tables of none.
    partial: whether rows with missing cells have a mean, which is not judged.
    UsageError where the study is none of a paper, or the paper prints no number.
    """
    found = find_study_of(study.name)
    if found is None:
        raise UsageError(
            f"{study.path} is the study {study.name!r}, and of no paper; --paper is for one begun "
            "by fltrain study --paper NAME"
        )
    paper, scale = found
    printed = read_printed(paper.printed)
    if not printed:
        raise UsageError(
            f"{paper.name} ({paper.shows}) has no printed numbers: {paper.paper} draws them; "
            f"fltrain table {study.path} has ours"
        )
    departures = _list_departures(study, paper, scale)
    groups = read_study(study)
    ours = [_read_ours(groups, table, partial) for table in printed]
    pairs = zip(printed, ours, strict=True)
    tables = [_set_table(paper.name, table, found, departures) for table, found in pairs]
    return [table for table in tables if table.rows]


def _list_departures(study: StudyFolder, paper: PaperStudy, scale: Scale) -> list[str]:
    """Return in which words the study's plan is not the paper's."""
    if scale != "full":
        return [f"the {scale} scale"]
    given = parse_plan_text(study.read_plan().text)
    wanted = paper.make_plan("full")
    told = []
    for word in sorted({*given, *wanted} - {"fixed", "trials"}):
        if given.get(word) != json.loads(json.dumps(wanted.get(word))):
            told.append(f"other {word}")
    fixed, own = given.get("fixed", {}), wanted.get("fixed", {})
    for word in sorted({*fixed, *own} - {*_HARMLESS}):
        if fixed.get(word) != own.get(word):
            told.append(f"{word} = {fixed.get(word)!r}")
    return told


def _set_table(
    name: str,
    table: PrintedTable,
    ours: Mapping[tuple[str, ...], Sequence[TableRow]],
    departures: Sequence[str],
) -> BesideTable:
    rows = []
    for place, number in table.cells.items():
        if place in ours:
            row = _set_row(ours[place], number, table)
            can_judge = not departures and row.n == row.cells
            rows.append(row if can_judge else replace(row, within=None))
    return BesideTable(
        study=name,
        shows=table.shows,
        metric=table.metric,
        by=table.by,
        best_of=table.best_of,
        departures=departures,
        rows=rows,
        best=count_best(table, rows),
    )


def count_best(table: PrintedTable, rows: Sequence[BesideRow]) -> list[BestCount]:
    """Return how often each value of the last axis is best, of accuracies; [] of other metrics.

    Ours are rounded as the paper's are.
    """
    if len(table.by) < 2 or not is_percentage(table.metric):
        return []
    values = list(dict.fromkeys(place[-1] for place in table.cells))
    lines: dict[tuple[Any, ...], dict[str, BesideRow]] = {}
    for row in rows:
        *head, value = row.where.values()
        if row.mean is not None:
            lines.setdefault(tuple(head), {})[str(value)] = row
    whole = [line for line in lines.values() if len(line) == len(values)]
    unit = max(number.unit for number in table.cells.values())
    ours: Counter[str] = Counter()
    printed: Counter[str] = Counter()
    for line in whole:
        reached = {
            value: round(row.mean / unit) for value, row in line.items() if row.mean is not None
        }
        ours.update(_list_best(reached))
        printed.update(_list_best({value: row.printed for value, row in line.items()}))
    return [BestCount(value, ours[value], printed[value]) for value in values if whole]


def _list_best(numbers: Mapping[str, float]) -> list[str]:
    """Return whose number is the largest."""
    largest = max(numbers.values())
    return [value for value, number in numbers.items() if number == largest]


def _read_ours(
    groups: Sequence[RecordGroup], table: PrintedTable, partial: bool
) -> dict[tuple[str, ...], list[TableRow]]:
    """Return our rows by their place in the paper's table; several where it prints a best."""
    known = {axis for group in groups for record in group.records for axis in record.where}
    axes = [*table.by, table.best_of] if table.best_of in known else list(table.by)
    ours: dict[tuple[str, ...], list[TableRow]] = {}
    for row in _list_rows(groups, table, axes, partial):
        place = tuple(str(row.where[axis]) for axis in table.by)
        ours.setdefault(place, []).append(row)
    return ours


def _list_rows(
    groups: Sequence[RecordGroup], table: PrintedTable, axes: Sequence[str], partial: bool
) -> list[TableRow]:
    """Return our rows, of the group that the paper's table is of."""
    show = ("best",) if table.best else ("last",)
    words = MeasureWords(show=show, metrics=(table.metric,))
    rows: list[TableRow] = []
    for group in groups:
        if table.group in ("", group.name):
            measures = list_measures(words, group.records, group.derive)
            asked = TableAxes(by=axes, partial=partial)
            rows += build_body(group.records, measures, asked).rows
    return rows


def _set_row(rows: Sequence[TableRow], number: PrintedNumber, table: PrintedTable) -> BesideRow:
    """Return a row: of several the best, which is known only where all are done."""
    best = max(rows, key=lambda row: -1.0 if row.mean is None else row.mean)
    is_known = all(row.mean is not None for row in rows)
    mean = None if best.mean is None or not is_known else best.mean * table.factor
    difference = None if mean is None else mean - number.mean
    deviations = None
    within = None
    if difference is not None and number.deviation is not None and number.std is not None:
        deviations = difference / number.deviation
        within = abs(difference) <= _WITHIN * number.std + number.unit / 2
    return BesideRow(
        where={axis: best.where[axis] for axis in table.by},
        mean=mean,
        std=None if best.std is None or mean is None else best.std * table.factor,
        n=min(row.n for row in rows),
        cells=best.cells,
        chosen=best.where.get(table.best_of) if table.best_of and mean is not None else None,
        printed=number.mean,
        printed_std=number.std,
        difference=difference,
        deviations=deviations,
        within=within,
    )
