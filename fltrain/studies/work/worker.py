"""What a worker does: it claims cells of a study, trains them, and ends when none is left for it.

It may be started at any time and killed at any moment, on any machine that sees the folder.
"""

import contextlib
import os
import random
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from niidpart.errors import FileFault, UsageError
from niidpart.splits.recipe import JSON

from ...disk.plain_folder import RunError
from ...engine.diverged import Diverged
from ...runs.events import JobDone, Preempted, Progress, RoundDone
from ...runs.requests import find_device
from ..cells.cell import StudyCell
from ..folder.beats import Beating, BeatListener, name_worker
from ..folder.claims import DONE, FAILED, ROUNDS, STOPPED, UNNEEDED, ClaimLost, ClaimStanding
from ..folder.roster import Roster, read_cells
from ..folder.study_folder import StudyFolder
from .cell_training import CellTrainer, count_rounds, identify_run
from .deciding import SearchReferee
from .machine import describe_place, list_changes
from .stopping import Stopping

_AMONG = 8  # open cells of which one is chosen, so that workers do not run for the same
_POLL = 1.0  # seconds until a worker that may be dead is looked at again
_PATIENCE = 5  # workers in a row that may end before a round of a cell is done


class CellStuck(Exception):
    """Workers end before a round of a cell is done, one after another: so would this one."""


@dataclass
class Worked:
    """What a worker has done. done, failed: names of cells."""

    done: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


@dataclass
class StudyWorker:
    """A worker of a study.

    cells: those that it may work on. is_anywhere: whether it takes up runs that were begun where
    other bits are computed. takes_winners: whether cells of winners are worked on, once known.
    """

    study: StudyFolder
    cells: dict[str, StudyCell]
    trainer: CellTrainer
    stopping: Stopping
    listener: BeatListener
    is_anywhere: bool = False
    takes_winners: bool = False
    name: str = field(default_factory=name_worker)
    worked: Worked = field(default_factory=Worked)
    doing: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.roster = Roster(self.study)
        self.referee = SearchReferee(self.study, self.roster)

    def work(self) -> Worked:
        """Work until no cell is left that this worker may claim, or it is to stop."""
        with self.stopping.hear_signals(), Beating(self.study.workers, self.name, self.doing):
            while not self.stopping.is_due:
                claimed = self._claim_next()
                if claimed is None:
                    break
                self._train(*claimed)
        return self.worked

    def _claim_next(self) -> tuple[StudyCell, int] | None:
        """Return a cell, claimed, and the number of the claim; None where none is left."""
        while not self.stopping.is_due:
            open_cells, in_doubt = self._list_claimable()
            for name, standing in _choose_order(open_cells):
                number = standing.number + 1
                if self._claim(name, number):
                    return self.cells[name], number
            if open_cells or self._decide():
                continue
            if not in_doubt and not self._awaits_winner():
                return None
            time.sleep(_POLL)
        return None

    def _decide(self) -> bool:
        """Decide the searches whose runs have ended. Return whether cells came of it."""
        if not self.takes_winners:
            return False
        self.referee.decide()
        before = len(self.cells)
        self.cells = self.roster.list_cells()
        return len(self.cells) > before

    def _awaits_winner(self) -> bool:
        """Return whether live workers are at the last runs of a search: cells may come of it."""
        return self.takes_winners and self.referee.can_come(self.worked.left)

    def _list_claimable(self) -> tuple[list[tuple[str, ClaimStanding]], bool]:
        """Return the cells that can be claimed, and whether a worker may yet prove to be dead."""
        # Claims first: whoever finishes between the two looks is then seen as done, not as free.
        standings = self.study.claims.list_standings(self.cells)
        out = self.study.places.list_done().union(self.worked.left)
        claimable, in_doubt = [], False
        for name, standing in standings.items():
            if name in out:
                continue
            if standing.is_open:
                claimable.append((name, standing))
            elif not standing.is_ended:
                holder = self.study.claims.read_claim(name, standing.number).get("worker", "")
                judged = self.listener.judge(holder)
                in_doubt |= judged == "unknown"
                if judged == "dead":
                    claimable.append((name, standing))
        return claimable, in_doubt

    def _claim(self, name: str, number: int) -> bool:
        """Claim a cell, unless what was begun of it would go on with other bits."""
        device = self.cells[name].asked["settings"].get("device", "auto")
        place = describe_place(find_device(device))
        newest = self.study.places.find_newest(name)
        rounds = None if newest is None else _count_readable(newest[1])
        value: JSON = {"worker": self.name, "place": place, ROUNDS: rounds or 0}
        changes: JSON = {}
        if newest is not None and rounds != 0:
            there = self.study.claims.read_claim(name, newest[0]).get("place")
            changes = list_changes(there, place) if there else {}
        if changes:
            if not self.is_anywhere:
                self.worked.left.append(name)
                return False
            value["anywhere"] = changes
        return self.study.claims.claim(name, number, value)

    def _train(self, cell: StudyCell, number: int) -> None:
        """Train a claimed cell; however that ends, the claim says it."""
        name, places = cell.name, self.study.places
        began = time.process_time()
        try:
            self._require_hope(name, number)
            is_begun = places.prepare(name, number, is_afresh=self._is_afresh(name, number))
            folder = places.find_run(name, number)
            self.trainer.train(cell, folder, self._follow(name, number), is_begun=is_begun)
            end = identify_run(folder)
            self._require_newest(name, number)
            self.study.claims.state_trained(name, number, end)
            places.finish(name, number)
        except ClaimLost:
            self._end(name, number, UNNEEDED)
        except Preempted:
            self.worked.stopped.append(name)
            self._end(name, number, STOPPED)
        except Exception as error:
            self._end_failed(name, number, error)
        except BaseException:
            self._end(name, number, STOPPED)
            raise
        else:
            self.worked.done.append(name)
            self._end(name, number, DONE, cpu=round(time.process_time() - began, 3), **end)
            places.clear(name)
            self.study.claims.sweep(name)
        finally:
            self.doing.pop(name, None)

    def _require_hope(self, name: str, number: int) -> None:
        """Raise CellStuck where as many workers as are patient have ended in no round of a cell."""
        fruitless = self.study.claims.count_fruitless(name, number)
        if fruitless >= _PATIENCE:
            raise CellStuck(
                f"{fruitless} workers in a row ended before its next round was done; give them a "
                "longer limit or more memory, or the cell fewer local epochs, and try it again"
            )

    def _is_afresh(self, name: str, number: int) -> bool:
        """Return whether a run is begun anew: what is left of it is damaged, or has no round.

        Without a round nothing is lost, and the engine is chosen for this machine.
        """
        newest = self.study.places.find_newest(name)
        is_damaged = self.study.claims.read_end(name, number - 1).get("is_damaged", False)
        return is_damaged or newest is None or not count_rounds(newest[1])

    def _follow(self, name: str, number: int) -> Callable[[Progress], None]:
        """Return the progress function of a cell: between two jobs it may end the training."""

        def progress(event: Progress) -> None:
            if isinstance(event, RoundDone):
                self.doing[name] = event.round, event.rounds
                self._require_newest(name, number)
            is_between = isinstance(event, JobDone | RoundDone)
            if is_between and self.stopping.is_due and event.round <= event.rounds:
                if isinstance(event, RoundDone) and event.round == event.rounds:
                    return  # it is finished, and may as well be counted
                raise Preempted

        return progress

    def _require_newest(self, name: str, number: int) -> None:
        if not self.study.claims.is_newest(name, number):
            raise ClaimLost(f"{name} was claimed by another worker")

    def _end_failed(self, name: str, number: int, error: Exception) -> None:
        """End the claim of a cell whose training failed; of a lost one nothing is said."""
        if not self.study.claims.is_newest(name, number):
            self._end(name, number, UNNEEDED)
            return
        kind = type(error).__name__
        is_tried = self.roster.is_mere_trial(name, {"kind": kind})
        (self.worked.done if is_tried else self.worked.failed).append(name)
        is_ours = isinstance(error, UsageError | FileFault | OSError | Diverged | CellStuck)
        said = [str(error), *getattr(error, "__notes__", [])]
        where = "" if is_ours else "".join(traceback.format_exception(error))
        self._end(
            name,
            number,
            FAILED,
            kind=kind,
            cause="\n".join(said),
            traceback=where,
            is_damaged=isinstance(error, RunError),
        )

    def _end(self, name: str, number: int, how: str, **told: Any) -> None:
        self.study.claims.end(name, number, {"end": how, "worker": self.name} | told)


def _count_readable(run: Path) -> int | None:
    """Return the rounds that a run could go on from; None where it cannot be read.

    Training says what is wrong with it.
    """
    with contextlib.suppress(OSError, RunError):
        return count_rounds(run)
    return None


def _choose_order(cells: Sequence[tuple[str, ClaimStanding]]) -> list[tuple[str, ClaimStanding]]:
    """Return cells as they are to be claimed: any that were begun first, so that they get done.

    Among the first of either kind in any order: results do not depend on who has which.
    """
    begun = [one for one in cells if one[1].number]
    others = [one for one in cells if not one[1].number]
    return [*_shuffle(begun), *_shuffle(others)]


def _shuffle(cells: Sequence[tuple[str, ClaimStanding]]) -> list[tuple[str, ClaimStanding]]:
    first = list(cells[:_AMONG])
    random.Random(os.urandom(8)).shuffle(first)
    return first


def work(
    folder: str | Path,
    *,
    cells: Sequence[str] = (),
    anywhere: bool = False,
    limit: float | None = None,
    trust: bool = False,
) -> tuple[Worked, int]:
    """Work on a study in this process. Return what was done, and the signal that ended it, or 0."""
    study = StudyFolder.open(folder)
    known = read_cells(study, cells)
    foreign = sorted({spec for cell in known.values() for spec in cell.own_code})
    if foreign and not trust:
        raise RunError(
            f"{folder} names code outside fltrain, {foreign[0]}; if it is yours, allow it with "
            "--trust (trust=True)"
        )
    stopping = Stopping(limit)
    worker = StudyWorker(
        study=study,
        cells=known,
        trainer=CellTrainer(study, trust),
        stopping=stopping,
        listener=BeatListener(study.workers),
        is_anywhere=anywhere,
        takes_winners=not cells,
    )
    return worker.work(), stopping.signal
