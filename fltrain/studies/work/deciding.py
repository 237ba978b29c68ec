"""Searches are decided: who has won follows from what their runs measured."""

import contextlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import niidpart
from niidpart.splits.recipe import JSON

from ...disk.plain_folder import RunError
from ...runs.folder import RunFolder
from ..cells.cell import StudyCell
from ..cells.cell_requests import lay_over_asked, lay_over_cell
from ..cells.searches import Search, SearchResult, Tried, find_winner
from ..folder.claims import ClaimStanding
from ..folder.roster import DIVERGED, Roster
from ..folder.study_folder import StudyFolder


@dataclass
class SearchReferee:
    """Decides the searches of a study whose runs have all ended.

    Whoever finds that may do it: all find the same, and the first to write it down is as good as
    any.
    """

    study: StudyFolder
    roster: Roster

    def decide(self) -> None:
        """Write down who has won each search all of whose runs have ended.

        RunError where a run cannot be read, and no search was decided: it keeps no other waiting.
        """
        undecided = self.roster.list_undecided()
        seen = self._look(undecided)
        unread: RunError | OSError | None = None
        is_any_decided = False
        for search in undecided:
            try:
                tried = seen.list_tried(search)
            except (RunError, OSError) as error:
                unread = error
                continue
            if tried is None:
                continue
            result = self._find_result(search, tried)
            self.study.write_result(search.key, result.to_json())
            is_any_decided = True
        if unread is not None and not is_any_decided:
            raise unread

    def can_come(self, left: Collection[str] = ()) -> bool:
        """Return whether a search may be decided by workers that are at its last runs now.

        left: runs that whoever asks leaves to others. It has looked before at those of workers that
        have died, and claims all but these.
        """
        undecided = self.roster.list_undecided()
        seen = self._look(undecided)
        for search in undecided:
            runs = seen.list_open(search.list_runs())
            is_left = any(name in left for name in runs)
            if not is_left and all(seen.is_held(name) for name in runs):
                return True
        return False

    def list_wrong_results(self) -> dict[str, str]:
        """Return of each result that does not follow from what its runs measured why, by its file.

        Runs that are gone or damaged, which is a fault of theirs, are taken for what the result
        says.
        """
        decided = self.roster.list_results()
        seen = self._look([search for search, _ in decided])
        wrong = {}
        for search, result in decided:
            what = _explain_wrong(search, result, seen)
            if what:
                wrong[str(self.study.find_result(search.key))] = what
        return wrong

    def _look(self, searches: Sequence[Search]) -> "_RunsSeen":
        """Look at the runs of searches.

        Claims first: a run that is finished between the two looks is done, and not free. Without a
        search there is nothing to look at.
        """
        if not searches:
            return _RunsSeen(self.study, {}, ())
        names: list[str] = []
        for search in searches:
            names += search.list_runs()
        standings = self.study.claims.list_standings(names)
        done = self.study.places.list_done()
        return _RunsSeen(
            self.study,
            standings,
            done,
        )

    def _find_result(self, search: Search, tried: Sequence[Tried]) -> SearchResult:
        """Return the result of a search, the winner's cells looked up."""
        chosen = find_winner(tried, is_smaller_better=search.is_smaller_better)
        if chosen is None:
            return SearchResult(tried, None)
        values = tried[chosen].values
        splits: dict[str, niidpart.FederatedSplit] = {}
        cells: list[StudyCell] = []
        for final in search.finals:
            if final.split not in splits:
                place = self.study.find_split(final.split)
                splits[final.split] = niidpart.read(place)
            cell = lay_over_cell(
                final,
                values,
                splits[final.split],
            )
            cells.append(cell)
        return SearchResult(
            tried,
            chosen,
            cells,
        )


@dataclass(frozen=True)
class _RunsSeen:
    """How the runs of searches stood when they were looked at. done: those that are finished."""

    study: StudyFolder
    standings: Mapping[str, ClaimStanding]
    done: Collection[str]

    def list_tried(self, search: Search) -> list[Tried] | None:
        """Return what the settings of a search came to; None where some run has not ended."""
        tried = []
        for values, names in zip(
            search.points,
            search.runs,
            strict=True,
        ):
            if self.list_open(names):
                return None
            lost = [name for name in names if name not in self.done]
            if lost:
                cause = str(self._read_end(lost[0]).get("cause", ""))
                tried.append(
                    Tried(
                        values,
                        None,
                        cause,
                    )
                )
            else:
                tried.append(
                    self._measure(
                        values,
                        names,
                        search.metric,
                    )
                )
        return tried

    def list_open(self, names: Sequence[str]) -> list[str]:
        """Return the runs that are neither done nor have diverged."""
        unfinished = [name for name in names if name not in self.done]
        return [name for name in unfinished if not self._has_diverged(name)]

    def is_held(self, name: str) -> bool:
        """Return whether some worker has a run, and has not let go of it."""
        return not self.standings[name].is_ended

    def _measure(
        self,
        values: JSON,
        names: Sequence[str],
        metric: str,
    ) -> Tried:
        """Return what a setting came to: the mean over the last rounds of its runs."""
        found = []
        for name in names:
            folder = self.study.places.find_cell(name)
            history = RunFolder.open(folder).history
            if not history:
                raise RunError(
                    f"{folder}/metrics.jsonl was finished and has no round; put it back from a "
                    f"backup, or remove {folder}, and it is trained again"
                )
            last: Mapping[str, object] = dict(history[-1])
            value = last.get(metric)
            if not isinstance(value, int | float) or not math.isfinite(value):
                return Tried(
                    values,
                    None,
                    f"{metric} is no finite number",
                )
            found.append(float(value))
        mean = sum(found) / len(found)
        return Tried(values, mean)

    def _has_diverged(self, name: str) -> bool:
        if not self.standings[name].has_failed:
            return False
        return self._read_end(name).get("kind") == DIVERGED

    def _read_end(self, name: str) -> JSON:
        number = self.standings[name].number
        return self.study.claims.read_end(name, number)


def _explain_wrong(search: Search, result: SearchResult, seen: _RunsSeen) -> str:
    """Return why a result does not follow from what the runs of its search measured; "" if it does.

    seen: how these stand.
    """
    tried = list(result.tried)
    with contextlib.suppress(RunError, OSError):
        tried = seen.list_tried(search) or tried
    chosen = find_winner(tried, is_smaller_better=search.is_smaller_better)
    if tried != list(result.tried) or chosen != result.chosen:
        return "it does not follow from what the runs of its search measured"
    named = [(cell.asked, cell.split, cell.where) for cell in result.cells]
    wanted = []
    if chosen is not None:
        values = tried[chosen].values
        for final in search.finals:
            wanted.append((lay_over_asked(final, values), final.split, final.where))
    return "" if named == wanted else "the cells that it names are not those of its winner"
