"""The doors of the leaderboard: from a folder of entries to boards and pages."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from niidpart.errors import FileFault, UsageError
from niidpart.files import write_folder, write_whole
from niidpart.splits.recipe import JSON

from ..studies.folder.study_folder import StudyFolder, is_study
from ..studies.packing.packed_file import PACKED, is_packed
from ..studies.packing.study_packing import open_study
from .entry_rules import find_foreign
from .site import write_pages
from .standings import DIVISIONS, TaskBoard, rank_entries
from .states import digest_entry
from .task import find_task, find_task_of, list_tasks
from .verifying import BADGES, Badge, EntryVerdict

__all__ = ["Leaderboard", "build_boards", "build_site", "keep_verdict"]


@dataclass(frozen=True)
class Leaderboard:
    """The boards of all tasks that have entries.

    Parameters
    ----------
    boards : sequence of TaskBoard
    left_out : mapping of str to str
        Entries that were looked at and are not as they must be, and the first fault of each.
    """

    boards: Sequence[TaskBoard]
    left_out: Mapping[str, str]


def build_boards(entries: str | Path, verdicts: str | Path | None = None) -> Leaderboard:
    """Return the boards of all tasks that have entries.

    Parameters
    ----------
    entries : str or Path
        A folder of studies, packed ones too, each an entry by its name; folders in it may hold
        them too.
    verdicts : str or Path, optional
        Where `keep_verdict` has written; without it all is claimed.

    Returns
    -------
    Leaderboard

    Raises
    ------
    UsageError
        There is no entry.
    """
    by_task: dict[str, dict[str, Path]] = {task: {} for task in list_tasks()}
    badges: dict[str, Badge] = {}
    left_out: dict[str, str] = {}
    boards = []
    with contextlib.ExitStack() as opened:
        for name, entry in _find_entries(Path(entries)).items():
            try:
                path = opened.enter_context(open_study(entry))
            except FileFault as error:
                left_out[name] = str(error)
                continue
            told = _read_verdict(name, path, verdicts)
            fault = _name_fault(path, told)
            if fault:
                left_out[name] = fault.replace(str(path), str(entry))
                continue
            study = StudyFolder.open(path)
            by_task[find_task_of(study.name).name][name] = path
            badges[name] = _choose_badge(told)
        for task_name, own in by_task.items():
            for division in DIVISIONS:
                board = rank_entries(find_task(task_name), own, badges, division)
                if board is not None:
                    boards.append(board)
    return Leaderboard(boards, left_out)


def _find_entries(folder: Path) -> dict[str, Path]:
    """Return the studies in a folder, and what was packed of some, by their names.

    UsageError where a study lies beside what was packed of it.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}; it holds a study for each entry")
    inside = sorted([*folder.glob("*"), *folder.glob("*/*")])
    found: dict[str, Path] = {}
    for path in inside:
        if is_study(path) or is_packed(path):
            name = str(path.relative_to(folder)).removesuffix(PACKED)
            if name in found:
                raise UsageError(f"{found[name]} and {path} are one entry twice; keep one of them")
            found[name] = path
    if not found:
        raise UsageError(
            f"{folder} holds no study; fltrain leaderboard plan TASK --algorithm NAME writes the "
            f"plan of one, and fltrain study PLAN --out {folder}/NAME trains it"
        )
    return found


def build_site(
    entries: str | Path, out: str | Path, verdicts: str | Path | None = None
) -> Leaderboard:
    """Write the pages of the leaderboard into a new folder, and return its boards.

    Parameters
    ----------
    entries, verdicts
        As of `build_boards`.
    out : str or Path

    Returns
    -------
    Leaderboard
    """
    built = build_boards(entries, verdicts)
    tasks = [find_task(name) for name in list_tasks()]
    pages = write_pages(tasks, built.boards, built.left_out)
    write_folder(Path(out), pages)
    return built


def keep_verdict(folder: str | Path, entry: str, verdict: EntryVerdict) -> Path:
    """Write a verdict down for the site: whoever builds it, and no entrant, says what is seen.

    Parameters
    ----------
    folder : str or Path
    entry : str
        Its name among the entries.
    verdict : EntryVerdict

    Returns
    -------
    Path
    """
    place = Path(folder) / f"{_name_file(entry)}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(verdict.to_json(), indent=2)
    write_whole(place, f"{text}\n".encode())
    return place


def _name_file(entry: str) -> str:
    return quote(
        entry, safe=""
    )  # no two entries have one: "a/b" and "a--b" are anybody's to choose


def _read_verdict(entry: str, path: Path, verdicts: str | Path | None) -> JSON:
    """Return what was seen of an entry; {} where nothing was, or of other runs than these."""
    if verdicts is None:
        return {}
    place = Path(verdicts) / f"{_name_file(entry)}.json"
    if not place.is_file():
        return {}
    told: JSON = json.loads(place.read_text())
    if not told.get("digest"):
        return told
    try:
        return told if told["digest"] == digest_entry(path) else {}
    except FileFault:
        return {}  # what is wrong is said where the entry is read


def _name_fault(path: Path, told: JSON) -> str:
    """Return what is wrong with an entry: as it was seen, or that it cannot be read; "" if not."""
    if told.get("faults"):
        return str(told["faults"][0])
    try:
        find_task_of(StudyFolder.open(path).name)
        digest_entry(path)
        return find_foreign(path)
    except (FileFault, UsageError) as error:
        return str(error)


def _choose_badge(told: JSON) -> Badge:
    for badge in BADGES:
        if badge == told.get("badge"):
            return badge
    return "claimed"
