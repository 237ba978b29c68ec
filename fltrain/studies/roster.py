"""The cells of a study as far as they are known: winners of searches have theirs afterwards."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import niidpart
from niidpart.errors import UsageError
from niidpart.splits.recipe import JSON

from ..runs.folder import RunFolder
from .cells import StudyCell, lay_over_cell
from .claims import Standing
from .folder import StoredPlan, StudyFolder
from .searches import Search, SearchResult, Tried, find_winner

_DIVERGED = "Diverged"  # the one failure that is a setting's own


@dataclass
class Roster:
    """The cells of a study's newest plan, read again as searches are decided.

    Whoever finds that all runs of a search have ended decides it: the winner follows from what
    they measured, so that all workers find the same, and the first to write it down is as good as
    any. Files are read once, since they never change.
    """

    study: StudyFolder
    _plan: StoredPlan | None = None
    _results: dict[str, SearchResult] = field(default_factory=dict)
    _n_cells: int = 0  # when they were listed last

    @property
    def plan(self) -> StoredPlan:
        """The newest plan when the roster was first asked."""
        if self._plan is None:
            self._plan = self.study.read_plan()
        return self._plan

    def list_cells(self) -> dict[str, StudyCell]:
        """Return the cells that are known by now, by name."""
        known: dict[str, StudyCell] = {}
        for cell in self.list_rows():
            before = known.get(cell.name)
            known[cell.name] = cell if before is None else before.join(cell)
        self._n_cells = len(known)
        return known

    def list_rows(self) -> list[StudyCell]:
        """Return the cells that are known by now as tables count them.

        Those of a winner stand behind those with the default values. Where these are what has won,
        a cell is there twice, once for each row.
        """
        of_winners: dict[str, list[StudyCell]] = {}
        for search, result in self.list_results():
            for final, cell in zip(search.finals, result.cells, strict=False):
                of_winners.setdefault(final.digest, []).append(cell)
        rows = []
        for value in self.plan.cells:
            one = StudyCell.from_json(value)
            rows += [one, *of_winners.get(one.digest, ())]
        return rows

    def list_results(self) -> list[tuple[Search, SearchResult]]:
        """Return the searches that are decided."""
        found = []
        for key, search in self._searches.items():
            value = {} if key in self._results else self.study.read_result(key)
            if value:
                self._results[key] = SearchResult.from_json(value)
            if key in self._results:
                found.append((search, self._results[key]))
        return found

    def list_undecided(self) -> list[Search]:
        """Return the searches whose winners are not known."""
        self.list_results()
        return [one for key, one in self._searches.items() if key not in self._results]

    def decide(self) -> bool:
        """Decide the searches all of whose runs have ended. Return whether cells came of it.

        Others may have decided them meanwhile: their cells count too.
        """
        before = self._n_cells
        undecided = self.list_undecided()
        if undecided:
            standings, done = self._look_at(undecided)
            for search in undecided:
                tried = self._read_tried(search, standings, done)
                if tried is not None:
                    self.study.write_result(search.key, self._settle(search, tried).to_json())
        return len(self.list_cells()) > before

    def can_come(self, left: Collection[str] = ()) -> bool:
        """Return whether a search may be decided by workers that are at its last runs now.

        left: runs that whoever asks leaves to others. It has looked before at those of workers that
        have died, and claims all but these.
        """
        undecided = self.list_undecided()
        standings, done = self._look_at(undecided)
        for search in undecided:
            names = [name for name in search.list_runs() if name not in done]
            if any(name in left for name in names):
                continue
            ended = [name for name in names if standings[name].is_ended]
            if all(self._has_diverged(name, standings) for name in ended):
                return True
        return False

    def list_wrong_results(self) -> dict[str, str]:
        """Return of each result that does not follow from what its runs measured why, by its file.

        Runs that are gone, which is a fault of theirs, are taken for what the result says.
        """
        decided = self.list_results()
        standings, done = self._look_at([search for search, _ in decided])
        wrong = {}
        for search, result in decided:
            tried = self._read_tried(search, standings, done) or result.tried
            chosen = find_winner(tried, is_smaller_better=search.is_smaller_better)
            if list(tried) != list(result.tried) or chosen != result.chosen:
                place = str(self.study.find_result(search.key))
                wrong[place] = "it does not follow from what the runs of its search measured"
        return wrong

    def _look_at(self, searches: Sequence[Search]) -> tuple[dict[str, Standing], set[str]]:
        """Return how the runs of searches stand, and which are done.

        Claims first: a run that is finished between the two looks is done, and not free.
        """
        names = [name for search in searches for name in search.list_runs()]
        standings = self.study.claims.list_standings(names)
        return standings, self.study.places.list_done()

    def _read_tried(
        self, search: Search, standings: Mapping[str, Standing], done: Iterable[str]
    ) -> list[Tried] | None:
        """Return what the settings of a search came to; None where some run has not ended."""
        tried = []
        for values, names in zip(search.points, search.trials, strict=True):
            open_runs = [name for name in names if name not in done]
            lost = [name for name in open_runs if self._has_diverged(name, standings)]
            if len(lost) < len(open_runs):
                return None
            if lost:
                cause = str(self._read_end(lost[0], standings).get("cause", ""))
                tried.append(Tried(values, None, cause))
            else:
                tried.append(self._measure(values, names, search.metric))
        return tried

    def _measure(self, values: JSON, names: Sequence[str], metric: str) -> Tried:
        """Return what a setting came to: the mean over the last rounds of its runs."""
        found = []
        for name in names:
            history = RunFolder.open(self.study.places.find_cell(name)).history
            value = dict(history[-1]).get(metric)
            if not isinstance(value, int | float) or not math.isfinite(value):
                return Tried(values, None, f"{metric} is no finite number")
            found.append(float(value))
        return Tried(values, sum(found) / len(found))

    def is_mere_trial(self, name: str, end: JSON) -> bool:
        """Return whether a cell that failed is a setting of a search that diverged, and no fault.

        end: of its claim.
        """
        return end.get("kind") == _DIVERGED and name in self._names_of_runs

    @cached_property
    def _searches(self) -> dict[str, Search]:
        """The searches of the plan by their keys."""
        searches = [Search.from_json(value) for value in self.plan.searches]
        return {search.key: search for search in searches}

    @cached_property
    def _names_of_runs(self) -> frozenset[str]:
        searches = self._searches.values()
        return frozenset(name for search in searches for name in search.list_runs())

    def _has_diverged(self, name: str, standings: Mapping[str, Standing]) -> bool:
        if not standings[name].has_failed:
            return False
        return self._read_end(name, standings).get("kind") == _DIVERGED

    def _read_end(self, name: str, standings: Mapping[str, Standing]) -> JSON:
        return self.study.claims.read_end(name, standings[name].number)

    def _settle(self, search: Search, tried: Sequence[Tried]) -> SearchResult:
        """Return the result of a search, the winner's cells looked up."""
        chosen = find_winner(tried, is_smaller_better=search.is_smaller_better)
        if chosen is None:
            return SearchResult(tried, None)
        splits: dict[str, niidpart.FederatedSplit] = {}
        cells = []
        for final in search.finals:
            if final.split not in splits:
                splits[final.split] = niidpart.read(self.study.find_split(final.split))
            cells.append(lay_over_cell(final, tried[chosen].values, splits[final.split]))
        return SearchResult(tried, chosen, cells)


def read_cells(study: StudyFolder, only: Sequence[str] = ()) -> dict[str, StudyCell]:
    """Return the cells of a study's newest plan by name, as far as they are known.

    only: these names; () for all. UsageError for a name that there is not.
    """
    cells = Roster(study).list_cells()
    for name in only:
        if name not in cells:
            raise UsageError(
                f"{study.path} has no cell {name!r}; they are listed by "
                f"fltrain study {study.path} --watch --json"
            )
    return {name: cells[name] for name in only} if only else cells
