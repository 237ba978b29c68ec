"""All cells of a plan, looked up: what cannot be carried out is refused, with its line."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import niidpart
from niidpart.data import Data
from niidpart.disk.progress import tell
from niidpart.errors import UsageError

from ...settings.stopping import find_better_sign
from ..plans.expansion import AskedCell
from ..plans.plan import StudyPlan
from ..plans.plan_text import PlanPath, find_named
from ..plans.searching import AskedSearch
from ..plans.split_words import SplitRequest, make_split
from .cell_requests import ResolvedCell, name_metric, resolve_cell
from .searches import Search
from .split_data import require_told_data


@dataclass
class ResolvedPlan:
    """All cells of a plan, each once; the splits that they are trained on by digest.

    searches: what waits for a winner. Their runs are among the cells, before all others.
    """

    cells: list[ResolvedCell] = field(default_factory=list)
    splits: dict[str, niidpart.FederatedSplit] = field(default_factory=dict)
    searches: list[Search] = field(default_factory=list)


def resolve_plan(
    plan: StudyPlan,
    asked: Iterable[AskedCell],
    searches: Sequence[AskedSearch] = (),
    load: Callable[..., Data] = niidpart.load,
) -> ResolvedPlan:
    """Look up all that cells ask for. load: what reads a data set.

    UsageError, with the line, for what `fltrain.run` would refuse before its first round, and where
    two cells of a group are the same.
    """
    asked = list(asked)
    resolver = _Resolver(plan, load)
    for n_done, search in enumerate(searches):
        tell("searches looked up", n_done, len(searches))
        resolver.add_search(search)
    for n_done, one in enumerate(asked):
        tell("cells looked up", n_done, len(asked))
        resolver.add(one)
    return resolver.resolved


@dataclass
class _Resolver:
    """Looks up cell by cell.

    places: where each cell stands, by digest. taken: the digests of cells by their values on the
    axes. made, data: the splits and the data sets so far. of_groups: the splits of each group.
    """

    plan: StudyPlan
    load: Callable[..., Data]
    resolved: ResolvedPlan = field(default_factory=ResolvedPlan)
    places: dict[str, int] = field(default_factory=dict)
    taken: dict[str, str] = field(default_factory=dict)
    made: dict[str, niidpart.FederatedSplit] = field(default_factory=dict)
    data: dict[str, Data] = field(default_factory=dict)
    of_groups: dict[str, dict[str, SplitRequest]] = field(default_factory=dict)

    def add(self, one: AskedCell) -> ResolvedCell:
        """Look up a cell that a table counts."""
        found = self._resolve(one)
        self._require_own_row(found, one)
        self._put(found, one)
        return found

    def add_search(self, search: AskedSearch) -> None:
        """Look up the runs of a search, and the cells that wait for its winner."""
        finals = [self._resolve(one) for one in search.finals]
        metric = name_metric(search.tuning.metric, finals[0].request)
        tried: dict[str, str] = {}
        names = []
        for point, runs in zip(search.points, search.runs, strict=True):
            of_point = []
            for one in runs:
                found = self._resolve(one)
                self._require_new(found, tried, one, point)
                self._put(replace(found, metric=metric), one)
                of_point.append(found.cell.name)
            names.append(of_point)
        self.resolved.searches.append(
            Search(
                metric=metric,
                is_smaller_better=find_better_sign(metric) == "<=",
                points=[json.loads(json.dumps(point)) for point in search.points],
                runs=names,
                finals=[found.as_winner() for found in finals],
            )
        )

    def _resolve(self, one: AskedCell) -> ResolvedCell:
        split = self._make_split(one)
        place = f"{self.plan.text.locate(one.path)}{describe_cell(one)}: "
        try:
            if one.is_of_search and split.val.n == 0:
                raise UsageError(
                    "tuning is on validation parts alone, and the parties of this split have "
                    "none; make it with val = 0.2"
                )
            return replace(resolve_cell(one, split), place=place)
        except UsageError as error:
            where = self.plan.text.locate(self._find_path(one, str(error)))
            raise UsageError(f"{where}{describe_cell(one)}: {error}") from error

    def _make_split(self, one: AskedCell) -> niidpart.FederatedSplit:
        """Return the split of a cell, each made once."""
        request, text = one.split, self.plan.text
        split = self.made.get(request.key)
        if split is None:
            with text.locate_errors(request.path, [*request.make, *request.source]):
                split = make_split(request, self.data, self.load)
            self.made[request.key] = split
            self.resolved.splits[split.digest] = split
        of_group = self.of_groups.setdefault(one.group, {})
        if request.key not in of_group:
            others = [(other, self.made[key].source) for key, other in of_group.items()]
            with text.locate_errors(request.path):
                require_told_data((request, split.source), others)
            of_group[request.key] = request
        return split

    def _find_path(self, one: AskedCell, message: str) -> PlanPath:
        """Return where the value stands that an error names, else the algorithm of its cell."""
        named = find_named([*one.options, *one.words, *one.settings], message)
        (group,) = [group for group in self.plan.groups if group.name == one.group]
        tables: list[PlanPath] = [one.path]
        tables += [(*path, table) for path in (group.path, ()) for table in ("axes", "fixed")]
        known = [(*table, *named) for table in tables if (*table, *named) in self.plan.text.lines]
        return known[0] if known else one.path

    def _put(self, found: ResolvedCell, one: AskedCell) -> None:
        """Put a cell to the others; one that groups share is joined."""
        digest = found.cell.digest
        place = self.places.setdefault(digest, len(self.resolved.cells))
        if place == len(self.resolved.cells):
            self.resolved.cells.append(found)
            return
        known = self.resolved.cells[place]
        if one.group in known.cell.where:
            raise UsageError(self._describe_twice(known, found, one))
        self.resolved.cells[place] = replace(known, cell=known.cell.join(found.cell))

    def _require_own_row(self, found: ResolvedCell, one: AskedCell) -> None:
        """Raise UsageError where an unlike cell of the group has the same values.

        Tables would join them.
        """
        place = json.dumps(found.cell.where, sort_keys=True)
        if self.taken.setdefault(place, found.cell.digest) != found.cell.digest:
            raise UsageError(
                f"{self.plan.text.locate(one.path)}two unlike cells are called the same, "
                f"{describe_cell(one)}, and would be one row of a table; give their splits names "
                "(name = 'noisy'), their algorithms labels (label = 'ours')"
            )

    def _require_new(
        self,
        found: ResolvedCell,
        tried: dict[str, str],
        one: AskedCell,
        point: Mapping[str, Any],
    ) -> None:
        """Raise UsageError where a search would train a setting twice. tried: those so far."""
        digest = found.cell.digest
        if digest in tried:
            where = self.plan.text.locate(one.path)
            raise UsageError(
                f"{where}{describe_cell(one)}: two settings that are tried are the same, "
                f"{tried[digest]} and {dict(point)}; leave out what changes nothing"
            )
        tried[digest] = str(dict(point))

    def _describe_twice(
        self,
        known: ResolvedCell,
        new: ResolvedCell,
        one: AskedCell,
    ) -> str:
        """Return by what two cells of a group that are the same are told apart."""
        first = known.cell.where[one.group]
        second = new.cell.where[one.group]
        told = []
        for key in {**first, **second}:
            if first.get(key) != second.get(key):
                told.append(f"{key} {first.get(key)} and {second.get(key)}")
        reason = f"{', '.join(told)} change nothing" if told else "the plan says it twice"
        return (
            f"{self.plan.text.locate(one.path)}two cells are the same, {describe_cell(one)}: "
            f"{reason}; leave one out"
        )


def describe_cell(one: AskedCell) -> str:
    """Return a cell in words, for errors."""
    words = [str(one.where[key]) for key in ("algorithm", "split")]
    words += [f"{key}={value}" for key, value in one.options.items()]
    return " ".join(words)
