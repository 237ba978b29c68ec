"""Whether an entry is what its task asks for, and whether rounds of it come out again."""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from niidpart.splits.recipe import JSON

from ..studies.folder.roster import Roster
from ..studies.folder.study_folder import StudyFolder
from ..studies.packing.packed_file import is_packed
from ..studies.packing.splits_again import supply_splits
from ..studies.packing.study_packing import open_study
from ..studies.verifying import has_tensors, verify_study
from ..verification.verdict import RunVerdict
from ..verification.verifying import verify
from .entry_rules import compare_with_task
from .states import digest_states, read_states
from .task import find_task_of

__all__ = ["EntryVerdict", "verify_entry"]

Badge = Literal["claimed", "replayed", "run again"]
BADGES: tuple[Badge, ...] = ("claimed", "replayed", "run again")  # the least believed first
_NAMED = 3  # runs that a fault names
_NO_DIGESTS = (
    "its metrics have no digests of states, which a verdict is of; train it with fltrain of today"
)


@dataclass(frozen=True)
class EntryVerdict:
    """What was found of an entry.

    Parameters
    ----------
    task : str
    digest : str
        Of the last states of all its runs: a verdict is of these and of no others.
    faults : list of str
        What is not as the task asks, or not as it was written.
    unchecked : list of str
    replayed : list of str
        Rounds that were trained again with the same digests: "fedavg-1a2b: round 7".
    is_again : bool
        Whether another study of the same plan came to the same states.
    """

    task: str
    digest: str
    faults: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    replayed: list[str] = field(default_factory=list)
    is_again: bool = False

    @property
    def badge(self) -> Badge:
        """How far an entry is to be believed: as its author says, or as somebody has seen."""
        if self.faults or not (self.replayed or self.is_again):
            return "claimed"
        return "run again" if self.is_again else "replayed"

    @property
    def exit_code(self) -> int:
        """0: nothing wrong. 1: faults. 3: no fault, and something could not be checked."""
        if self.faults:
            return 1
        return 3 if self.unchecked else 0

    def to_json(self) -> JSON:
        """Return the verdict for machines, and for the file that the site reads."""
        return asdict(self) | {"badge": self.badge, "exit": self.exit_code}


def verify_entry(
    entry: str | Path,
    *,
    replay: int = 3,
    again: str | Path | None = None,
    data_root: str | Path | None = None,
    trust: bool = False,
) -> EntryVerdict:
    """Check an entry of the leaderboard.

    Its plan is made anew from the task, its splits derived from the data, and every cell of it has
    to be there under the digest of what it asks for; every file of every run has to be as it was
    written; then rounds that nobody knew of before are trained again.

    Parameters
    ----------
    entry : str or Path
        The folder of its study, or what `fltrain pack` made of it: then splits are those that the
        data gives, and rounds are trained from round 0.
    replay : int
        So many rounds drawn at random, of different runs as long as there are some, and the last
        round of each of these runs, which rows are ranked by.
    again : str or Path, optional
        A study of the same plan that somebody else has trained, or what `fltrain pack` made of it.
    data_root : str or Path, optional
        Where the data set lies.
    trust : bool
        Run the code outside fltrain that the entry names: without it such an entry is refused.

    Returns
    -------
    EntryVerdict

    Raises
    ------
    UsageError
        It is the study of no task, or names code that is not trusted.
    """
    check = partial(_check_run, data_root=data_root, trust=trust)
    with open_study(entry) as folder:
        study = StudyFolder.open(folder)
        task = find_task_of(study.name)
        faults, splits = compare_with_task(study, task, data_root, trust=trust)
        if is_packed(entry):
            supply_splits(study, splits)
        runs, states = _check_runs(study, check, replay)
    faults += runs.faults + _check_states(states, again)
    is_again = again is not None and not _is_same_folder(entry, again)
    return EntryVerdict(
        task=task.name,
        digest=digest_states(states),
        faults=faults,
        unchecked=runs.unchecked,
        replayed=runs.replayed,
        is_again=is_again and bool(states) and not faults,
    )


class _RunFindings(NamedTuple):
    """What was found of all runs of an entry, each line with the name of its run."""

    faults: list[str]
    unchecked: list[str]
    replayed: list[str]


def _check_runs(
    study: StudyFolder, check: Callable[..., RunVerdict], replay: int
) -> tuple[_RunFindings, dict[str, str]]:
    """Return what was found of all runs, and what they came to; {} unless all are whole."""
    cells = Roster(study).list_cells()
    done = study.places.list_done() & set(cells)
    counts = _draw_rounds(sorted(done), replay)
    runs = _join_verdicts(verify_study(study.path, partial(check, counts=counts)))
    is_whole = len(done) == len(cells) and not runs.faults
    states = read_states(study, cells) if is_whole else {}
    runs.faults[:0] = _list_missing_cells(study, done)
    return runs, states


def _join_verdicts(verdicts: Mapping[str, RunVerdict]) -> _RunFindings:
    """Return what was found of runs, which are told by their folders."""
    found = _RunFindings([], [], [])
    for folder, one in verdicts.items():
        name = Path(folder).name
        found.faults.extend(f"{name}: {fault}" for fault in one.faults)
        found.unchecked.extend(f"{name}: {what}" for what in one.unchecked)
        found.replayed.extend(f"{name}: round {number}" for number in one.replayed)
    return found


def _list_missing_cells(study: StudyFolder, done: Collection[str]) -> list[str]:
    """Return that cells of a study are not done, and which."""
    roster = Roster(study)
    cells = roster.list_cells()
    missing = sorted(set(cells) - set(done))
    if not missing and not roster.list_pending():
        return []
    counted, named = _count_some(missing, cells, "cells")
    return [f"{counted} are not done: {named}"]


def _count_some(some: Sequence[str], among: Collection[str], what: str) -> tuple[str, str]:
    """Return how many of how many, and the names of the first ones."""
    named = ", ".join(some[:_NAMED])
    return f"{len(some)} of {len(among)} {what}", named


def _is_same_folder(one: str | Path, other: str | Path) -> bool:
    place = Path(one).resolve()
    return place == Path(other).resolve()


def _check_states(states: Mapping[str, str], again: str | Path | None) -> list[str]:
    """Return what is wrong with the states that runs came to, also beside another study's."""
    faults = []
    if "" in states.values():
        faults.append(_NO_DIGESTS)
    if again is None:
        return faults
    with open_study(again) as folder:
        others = read_states(StudyFolder.open(folder), states)
    return faults + _compare_states(states, others, again)


def _compare_states(
    states: Mapping[str, str], others: Mapping[str, str], again: str | Path
) -> list[str]:
    """Return which runs came to other states in another study."""
    differing = []
    for name, state in states.items():
        if others.get(name) != state:
            differing.append(name)
    if not differing:
        return []
    counted, named = _count_some(differing, states, "runs")
    return [f"{again} came to other states in {counted}: {named}"]


def _draw_rounds(names: list[str], count: int) -> Mapping[str, int]:
    """Return how many rounds of each run are trained again, drawn by the machine's own chance."""
    chance = random.SystemRandom()  # a seed would tell an entrant which rounds have to be right
    if not names:
        return {}
    # Of as many runs as can be: a number that was made up stands in one of them, or in several.
    each, more = divmod(count, len(names))
    counts = dict.fromkeys(names, each)
    for name in chance.sample(names, more):
        counts[name] += 1
    return {name: n for name, n in counts.items() if n}


def _check_run(
    folder: str,
    *,
    counts: Mapping[str, int],
    data_root: str | Path | None,
    trust: bool,
) -> RunVerdict:
    name = Path(folder).name
    return verify(
        folder,
        replay=counts.get(name, 0),
        with_last=True,  # rows are ranked by that round: who makes up numbers makes up it
        data_root=data_root,
        trust=trust,
        has_checkpoints=has_tensors(folder),
    )
