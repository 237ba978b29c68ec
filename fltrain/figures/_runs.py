"""The runs of a figure, arranged: panels, in each of them series, in each of these entries.

An entry is that of a table (`evidence/tables.py`): runs that differ in seeds alone are its trials,
and what failed or has not ended stays in it.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from niidpart.errors import UsageError

from ..common import is_number
from ..evidence.faults import list_faults, require_something
from ..evidence.measures import METRIC, MeasureWords, RunMeasure, list_measures
from ..evidence.place_words import describe_place
from ..evidence.records import (
    RUN_AXIS,
    SETTING_AXIS,
    SPLIT_AXIS,
    RunRecord,
    list_axes,
    list_varied,
)
from ..evidence.tables import TableAxes, TableBody, TableEntry, build_body, choose_records
from ._labels import label_rows
from ._places import count_places, find_point, sort_places
from ._words import FigureWords

if TYPE_CHECKING:
    from ..evidence.reading import RecordGroup

_MOST_PANELS = 40
_RECIPE = "recipe"
# Its values on the axes of panels; its columns, by number, with the places of their points.
_PanelColumns = tuple[Mapping[str, Any], list[tuple[int, Any]]]


@dataclass(frozen=True)
class SeriesRuns:
    """What has one colour in a panel.

    label: what the legend calls it. setting: what it shares a colour with, where each run is shown
    by itself; else the label. points: its entries by their value on the axis of the points, that
    of a figure without one being None.
    """

    label: str
    setting: str
    points: Sequence[tuple[Any, TableEntry]]

    @property
    def entry(self) -> TableEntry:
        """The entry of a series that has one."""
        ((_, entry),) = self.points
        return entry


@dataclass(frozen=True)
class PanelRuns:
    """A panel. title: "" where there is one."""

    title: str
    series: Sequence[SeriesRuns]


@dataclass(frozen=True)
class Arrangement:
    """Panels with their series.

    labels: of all series, each with its setting, in order. body: the same as rows and columns.
    """

    panels: Sequence[PanelRuns]
    labels: Mapping[str, str]
    body: TableBody
    faults: Sequence[str]

    @property
    def titles(self) -> list[str]:
        """Those of the panels."""
        return [panel.title for panel in self.panels]

    @property
    def lone(self) -> str:
        """The label of the only series, which needs no legend; "" where there are several."""
        labels = list(self.labels)
        return labels[0] if len(labels) == 1 else ""

    def list_lost_runs(self) -> list[str]:
        """Return a line for each run that failed or has not ended, and nothing on means."""
        return list_faults(self.body, TableAxes(partial=True))

    @property
    def entries(self) -> Iterator[TableEntry]:
        """All entries."""
        for panel in self.panels:
            for series in panel.series:
                for _, entry in series.points:
                    yield entry

    def name_runs(self) -> dict[str, list[str]]:
        """Return the names of the runs of each series."""
        names: dict[str, list[str]] = {label: [] for label in self.labels}
        for panel in self.panels:
            for series in panel.series:
                own = names[series.label]
                for _, entry in series.points:
                    own += [record.name for record in entry.records]
        return names


@dataclass(frozen=True)
class FigureRuns:
    """What a kind draws: the runs that were asked for, and how they are to be arranged."""

    group: "RecordGroup"
    words: FigureWords

    @property
    def records(self) -> Sequence[RunRecord]:
        """The runs, whatever became of them."""
        return self.group.records

    @property
    def notes(self) -> list[str]:
        """Lines on the runs: what was tuned, what was left out, in what they differ besides."""
        differing = [f"not the same in all runs: {line}" for line in self.group.differences]
        return [*self.group.notes, *differing]

    def name_metric(self, usual: str = METRIC) -> str:
        """Return the first metric that is asked for, else the usual one."""
        metrics = self.words.metrics
        return metrics[0] if metrics else usual

    def without_metrics(self) -> "FigureRuns":
        """Return the same runs for a kind that reads metrics of single parties by itself."""
        return FigureRuns(self.group, replace(self.words, metrics=()))

    def find_measure(self, show: str = "last") -> RunMeasure:
        """Return the measure that a name of `fltrain table --show` means, of the first metric.

        UsageError for a name or a metric that there is not.
        """
        words = MeasureWords(
            show=(show,),
            metrics=(self.name_metric(),),
            better=self.words.better,
        )
        (measure,) = list_measures(words, self.records, self.group.derive)
        return measure

    def arrange(self, measure: RunMeasure, points: Sequence[str] = ()) -> Arrangement:
        """Return the panels. points: the axes by which the points of a series differ.

        UsageError for an axis that there is not.
        """
        panels = self._choose_panels(points)
        columns = (*panels, *points)
        axes = TableAxes(
            by=self._choose_rows(columns),
            columns=columns,
            partial=self.words.partial,
            failed_as=self.words.failed_as,
        )
        body = build_body(self.records, [measure], axes)
        labels = label_rows(body, self.words)
        arranged = []
        for where, places in _group_columns(body, panels, points):
            title = _name_panel(where) if panels else ""
            series = _list_series(body, places, labels)
            arranged.append(PanelRuns(title, series))
        faults = list_faults(body, axes)
        return Arrangement(arranged, dict(labels), body, faults)

    def _choose_rows(self, columns: Sequence[str]) -> Sequence[str]:
        """Return the axes of series; () for what tables choose.

        Unless they are asked for: all that vary, but for those that the columns tell, as a recipe
        tells the strategy.
        """
        if self.words.each:
            return (RUN_AXIS,)
        if self.words.by or not columns:
            return self.words.by
        varied = [axis for axis in list_varied(self.records) if axis not in columns]
        rows = [axis for axis in varied if not self._is_told(axis, columns)]
        return rows or ("algorithm",)

    def _choose_panels(self, points: Sequence[str]) -> tuple[str, ...]:
        """Return the axes of the panels; unless they are asked for, those of a study's splits."""
        asked = self.words.panels
        if asked is None:
            taken = (*points, *self.words.by)
            found = [] if self.words.each else self.find_split_axes()
            asked = [one for one in found if one not in taken]
        panels = tuple(one for one in asked if one not in points)
        n = count_places(self.records, panels)
        if n > _MOST_PANELS:
            named = ", ".join(panels)
            raise UsageError(
                f"{named} make {n} panels, and {_MOST_PANELS} are the most; take some by --where "
                "AXIS=A,B, or other axes by --panels"
            )
        return panels

    def find_split_axes(self) -> list[str]:
        """Return the axes that a split of a study tells: each split has one value of them.

        None where it tells the algorithm too, as of runs on a split each; nor of runs that are no
        study, whose labels say what differs.
        """
        told = self.list_told_by_split()
        if SETTING_AXIS in list_axes(self.records) or "algorithm" in told:
            return []
        n = count_places(self.records, told)
        if _RECIPE in told and count_places(self.records, [_RECIPE]) == n:
            return [_RECIPE]
        # A split is called by its words, which other axes may have told already.
        without = [one for one in told if one != SPLIT_AXIS]
        return without if count_places(self.records, without) == n else told

    def list_told_by_split(self) -> list[str]:
        """Return the axes on which runs differ, of which a split has one value each."""
        return [one for one in list_varied(self.records) if self._is_told_by_split(one)]

    def _is_told_by_split(self, axis: str) -> bool:
        values: dict[str, set[str]] = {}
        for record in self.records:
            value = record.where.get(axis)
            values.setdefault(record.split, set()).add(repr(value))
        return all(len(found) == 1 for found in values.values())

    def _is_told(self, axis: str, columns: Sequence[str]) -> bool:
        """Return whether runs of one column have one value on an axis."""
        with_axis = count_places(self.records, [*columns, axis])
        return with_axis == count_places(self.records, columns)


def prepare_runs(group: "RecordGroup", words: FigureWords) -> FigureRuns:
    """Return the runs of a figure. UsageError where nothing is done, or none is as was asked."""
    if not group.records:
        raise UsageError("there are no runs to draw; name run folders, sweeps or a study")
    require_something(group.study, group.place, group.records)
    records = choose_records(group.records, words.where)
    return FigureRuns(group._replace(records=records), words)


def _group_columns(
    body: TableBody, panels: Sequence[str], points: Sequence[str]
) -> list[_PanelColumns]:
    """Return of each panel its values on its axes, and its columns with the places of points.

    Panels of which all axes are numbers lie in the order of these.
    """
    found: dict[str, _PanelColumns] = {}
    for place, where in enumerate(body.columns):
        of_panel = {name: where[name] for name in panels}
        _, columns = found.setdefault(repr(of_panel), (of_panel, []))
        point = find_point(where, points)
        columns.append((place, point))
    listed = list(found.values())
    values = [list(where.values()) for where, _ in listed]
    if all(is_number(value) for value in itertools.chain.from_iterable(values)):
        listed.sort(key=lambda one: list(one[0].values()))
    return listed


def _name_panel(where: Mapping[str, Any]) -> str:
    """Return the values of a panel; a recipe by its name alone, as splits are."""
    told = {}
    for axis, value in where.items():
        told[SPLIT_AXIS if axis == _RECIPE else axis] = value
    return describe_place(told)


def _list_series(
    body: TableBody, columns: Sequence[tuple[int, Any]], labels: Sequence[tuple[str, str]]
) -> list[SeriesRuns]:
    """Return the rows that have runs in some of the columns."""
    found = []
    values = sort_places([value for _, value in columns])
    ranks = {repr(value): number for number, value in enumerate(values)}
    ordered = sorted(columns, key=lambda one: ranks[repr(one[1])])
    for row, (label, setting) in zip(body.rows, labels, strict=True):
        points = []
        for place, value in ordered:
            entry = row.entries[place]
            if entry is not None:
                points.append((value, entry))
        if points:
            series = SeriesRuns(label, setting, points)
            found.append(series)
    return found
