"""Tables of a study: mean, sample deviation and n of a metric, by any axes. Needs no torch."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from niidpart.errors import UsageError
from niidpart.registry import did_you_mean

from ..runs.folder import RunFolder
from ..runs.metric_names import find_metric
from .cells import StudyCell
from .derived_values import derive_of_cells, is_derived
from .folder import StudyFolder

SEED_AXES = ("split_seed", "init_seed", "order_seed")
METRIC = "test_accuracy"


@dataclass(frozen=True)
class TableRow:
    """A row: the cells that have the same values on the axes.

    n: those that are done, of `cells`. mean: None where one is missing, unless parts were asked
    for; std: also where there is one alone.
    """

    where: Mapping[str, Any]
    cells: int
    n: int
    mean: float | None
    std: float | None


@dataclass(frozen=True)
class StudyTable:
    """A table of a study. axes: by which its rows differ."""

    study: str
    group: str
    metric: str
    axes: Sequence[str]
    rows: Sequence[TableRow]

    def to_json(self) -> dict[str, Any]:
        """Return it for machines."""
        rows = [
            dict(row.where) | {"n": row.n, "cells": row.cells, "mean": row.mean, "std": row.std}
            for row in self.rows
        ]
        return {
            "study": self.study,
            "group": self.group,
            "metric": self.metric,
            "by": list(self.axes),
            "rows": rows,
        }


def tabulate(
    study: StudyFolder,
    cells: Sequence[StudyCell],
    *,
    by: Sequence[str] = (),
    metric: str = METRIC,
    best: bool = False,
    partial: bool = False,
) -> list[StudyTable]:
    """Return a table for each group of the plan.

    by: the axes of its rows; () for all on which its cells differ but the seeds. best: the largest
    value of all rounds in place of the last. partial: whether rows with missing cells have a mean.
    UsageError for an axis that there is not.
    """
    done = study.places.list_done()
    names = list(dict.fromkeys(group for cell in cells for group in cell.groups))
    finished = [cell for cell in cells if cell.name in done]
    values = {} if is_derived(metric) else _read_values(study, finished, metric, best)
    tables = []
    for group in names:
        members = [cell for cell in cells if group in cell.where]
        if is_derived(metric):
            of_group = [cell for cell in members if cell.name in done]
            found = derive_of_cells(study, of_group, metric, group)
            values = {name: max(each) if best else each[-1] for name, each in found.items()}
        axes = _choose_axes([cell.where[group] for cell in members], by)
        rows = _group_rows(members, group, axes, values, partial)
        tables.append(StudyTable(study.name, group, metric, axes, rows))
    return tables


def _read_values(
    study: StudyFolder, cells: Sequence[StudyCell], metric: str, best: bool
) -> dict[str, float]:
    """Return the value of each finished cell; those without it are left out."""
    histories = {
        cell.name: RunFolder.open(study.places.find_cell(cell.name)).history for cell in cells
    }
    if not histories:
        return {}
    asked = find_metric(metric, list(histories.values()))
    found = {}
    for name, history in histories.items():
        known = [dict(metrics).get(asked) for metrics in history]
        numbers = [value for value in known if isinstance(value, int | float)]
        if numbers:
            found[name] = float(max(numbers) if best else numbers[-1])
    return found


def _choose_axes(where: Sequence[Mapping[str, Any]], by: Sequence[str]) -> list[str]:
    known = list(dict.fromkeys(axis for one in where for axis in one))
    for axis in by:
        if axis not in known:
            raise UsageError(f"there is no axis {axis!r}; {did_you_mean(axis, known)}")
    if by:
        return list(by)
    varied = [axis for axis in known if len({repr(one.get(axis)) for one in where}) > 1]
    return [axis for axis in varied if axis not in SEED_AXES] or ["algorithm"]


def _group_rows(
    cells: Sequence[StudyCell],
    group: str,
    axes: Sequence[str],
    values: Mapping[str, float],
    partial: bool,
) -> list[TableRow]:
    members: dict[str, list[StudyCell]] = {}
    for cell in cells:
        key = repr([cell.where[group].get(axis) for axis in axes])
        members.setdefault(key, []).append(cell)
    rows = []
    for row in members.values():
        known = [values[cell.name] for cell in row if cell.name in values]
        is_whole = len(known) == len(row)
        can_tell = bool(known) and (is_whole or partial)
        where = {axis: row[0].where[group].get(axis) for axis in axes}
        rows.append(
            TableRow(
                where=where,
                cells=len(row),
                n=len(known),
                mean=statistics.mean(known) if can_tell else None,
                std=statistics.stdev(known) if can_tell and len(known) > 1 else None,
            )
        )
    return rows
