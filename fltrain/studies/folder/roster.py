"""The cells of a study as far as they are known: winners of searches have theirs afterwards."""

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from niidpart.errors import UsageError
from niidpart.splits.recipe import JSON

from ...disk.plain_folder import RunError
from ..cells.cell import StudyCell
from ..cells.searches import Search, SearchResult
from .study_folder import StoredPlan, StudyFolder

DIVERGED = "Diverged"  # the one failure that is a setting's own


@dataclass
class Roster:
    """The cells of a study's newest plan, as it is when first asked, and at each `refresh`.

    Files are read once, since they never change; winners as their searches are decided.

    passes_over: whether a result that cannot be read is passed over as if its search were not
    decided, and kept in `damaged`: why, by its file.
    """

    study: StudyFolder
    passes_over: bool = False
    damaged: dict[str, str] = field(default_factory=dict)
    _plan: StoredPlan | None = None
    _index: "_SearchIndex | None" = None
    _results: dict[str, SearchResult] = field(default_factory=dict)

    @property
    def plan(self) -> StoredPlan:
        """The newest plan when the roster was first asked, or refreshed."""
        if self._plan is None:
            self._plan = self.study.read_plan()
        return self._plan

    def refresh(self) -> bool:
        """Take the newest plan where the study was given another. Return whether it was."""
        if self.study.newest_plan == self.plan.number:
            return False
        self._plan = self._index = None
        return True

    def list_cells(self) -> dict[str, StudyCell]:
        """Return the cells that are known by now, by name."""
        known: dict[str, StudyCell] = {}
        for cell in self.list_rows():
            before = known.get(cell.name)
            if before is not None:
                cell = before.join(cell)
            known[cell.name] = cell
        return known

    def list_rows(self) -> list[StudyCell]:
        """Return the cells that are known by now as tables count them.

        Those of a winner stand behind those with the default values. Where these are what has won,
        a cell is there twice, once for each row.
        """
        of_winners = self._list_winners()
        rows = []
        for value in self.plan.cells:
            cell = StudyCell.from_json(value)
            rows.append(cell)
            rows += of_winners.get(cell.digest, [])
        return rows

    def list_pending(self) -> list[tuple[StudyCell, bool]]:
        """Return the cells of winners that are not known, with the default values, for tables.

        With each whether it never will be: every setting of its search has diverged.
        """
        pending = []
        for search in self._indexed.by_key.values():
            result = self._read_result(search.key)
            if result is None or result.chosen is None:
                is_lost = result is not None
                pending += [(final, is_lost) for final in search.finals]
        return pending

    def _list_winners(self) -> dict[str, list[StudyCell]]:
        """Return the cells of winners by the digest of the default's."""
        found: dict[str, list[StudyCell]] = {}
        for search, result in self.list_results():
            if result.chosen is None:
                continue
            pairs = zip(search.finals, result.cells, strict=True)
            for final, cell in pairs:
                found.setdefault(final.digest, []).append(cell)
        return found

    def list_results(self) -> list[tuple[Search, SearchResult]]:
        """Return the searches that are decided."""
        found = []
        for key, search in self._indexed.by_key.items():
            result = self._read_result(key)
            if result is not None:
                found.append((search, result))
        return found

    def list_undecided(self) -> list[Search]:
        """Return the searches whose winners are not known."""
        undecided = []
        for key, search in self._indexed.by_key.items():
            if self._read_result(key) is None:
                undecided.append(search)
        return undecided

    def has_merely_lost(self, name: str, end: JSON) -> bool:
        """Return whether a cell that failed is a setting of a search that diverged, and no fault.

        end: of its claim.
        """
        has_diverged = end.get("kind") == DIVERGED
        return has_diverged and name in self._indexed.runs

    def _read_result(self, key: str) -> SearchResult | None:
        """Return what came of a search; None where it is not decided."""
        known = self._results.get(key)
        if known is not None:
            return known
        try:
            value = self.study.read_result(key)
            result = self._understand(key, value) if value else None
        except RunError as error:
            if not self.passes_over:
                raise
            self.damaged[str(self.study.find_result(key))] = str(error)
            return None
        if result is not None:
            self._results[key] = result
        return result

    def _understand(self, key: str, value: JSON) -> SearchResult:
        """Return the result that a file states. RunError where it is none of its search."""
        n_cells = len(self._indexed.by_key[key].finals)
        with contextlib.suppress(KeyError, TypeError):
            result = SearchResult.from_json(value)
            if len(result.cells) == (0 if result.chosen is None else n_cells):
                return result
        place = self.study.find_result(key)
        raise RunError(f"{place} is no result of its search; remove it, and that is decided anew")

    @property
    def _indexed(self) -> "_SearchIndex":
        """The searches of the plan."""
        if self._index is None:
            searches = [Search.from_json(value) for value in self.plan.searches]
            self._index = _SearchIndex(
                by_key={search.key: search for search in searches},
                runs=frozenset(name for search in searches for name in search.list_runs()),
            )
        return self._index


class _SearchIndex(NamedTuple):
    """The searches of a plan by their keys; the names of all their runs."""

    by_key: dict[str, Search]
    runs: frozenset[str]


def require_trust(
    study: StudyFolder,
    cells: Iterable[StudyCell],
    trust: bool,
) -> None:
    """Raise RunError where cells name code outside fltrain that nobody trusts."""
    foreign = sorted({spec for cell in cells for spec in cell.own_code})
    if foreign and not trust:
        raise RunError(
            f"{study.path} names code outside fltrain, {foreign[0]}; if it is yours, "
            "allow it with --trust (trust=True)"
        )


def read_cells(study: StudyFolder, only: Sequence[str] = ()) -> dict[str, StudyCell]:
    """Return the cells of a study's newest plan by name, as far as they are known.

    only: these names; () for all. UsageError for a name that there is not.
    """
    cells = Roster(study).list_cells()
    if not only:
        return cells
    for name in only:
        if name not in cells:
            raise UsageError(
                f"{study.path} has no cell {name!r}; they are listed by "
                f"fltrain study {study.path} --watch --json"
            )
    return {name: cells[name] for name in only}
