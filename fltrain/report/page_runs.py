"""The runs of a page, each read once: metrics with their lists, times, what was asked, where."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from niidpart.disk.progress import tell
from niidpart.splits.recipe import JSON

from ..evidence.records import RunRecord
from ..runs.folder import RunFolder
from ..runs.points import read_history


@dataclass(frozen=True)
class PageRun:
    """A run that has a folder, with all that a page needs of it.

    history: with the lists of parties, and the seconds of each round.
    """

    folder: Path
    history: Sequence[Mapping[str, Any]]
    config: JSON
    environment: JSON


PageRuns = Mapping[Path, PageRun]  # by folder


def read_page_runs(records: Iterable[RunRecord]) -> PageRuns:
    """Return the runs that have folders. RunError for one that is damaged."""
    folders = [record.folder for record in records if record.folder is not None]
    places = dict.fromkeys(folders)
    found = {}
    for place in places:
        found[place] = _read(place)
        tell("runs for the page", len(found), len(places))
    return found


def _read(place: Path) -> PageRun:
    folder = RunFolder.open(place)
    return PageRun(
        folder=place,
        history=read_history(folder),
        config=folder.config,
        environment=folder.environment,
    )


def choose_runs(runs: PageRuns, records: Iterable[RunRecord]) -> list[PageRun]:
    """Return the runs of some records, as far as they have any rounds."""
    held = [runs[record.folder] for record in records if record.folder is not None]
    return [run for run in held if run.history]
