"""Cells of a study are trained, or gone on with, as `fltrain.run` and `resume` do it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import niidpart
from niidpart.data import Data
from niidpart.data.of_split import open_data
from niidpart.errors import UsageError

from ...checkpoints.names import list_own_names
from ...disk.plain_folder import PlainFolder
from ...engine.diverged import Diverged
from ...engine.processes.availability import leave_cores
from ...runs.configuration import CONFIG
from ...runs.events import OnProgress
from ...runs.folder import CHECKPOINTS, RunFolder
from ...runs.opening import NewFolders
from ...runs.own_files import OwnCodeChanged
from ...runs.requests import find_device
from ...runs.resuming import resume_runs
from ...runs.training import train
from ..cells.cell import StudyCell, restore_lists
from ..cells.cell_requests import restore_request
from ..folder.roster import require_trust
from ..folder.study_folder import StudyFolder
from ..plans.plan_checks import expand_paths


@dataclass
class CellTrainer:
    """Trains cells, one after another or several at once; what they share is read once."""

    study: StudyFolder
    trust: bool
    _data: dict[Any, Data] = field(default_factory=dict)
    _splits: dict[str, niidpart.FederatedSplit] = field(default_factory=dict)

    def train(
        self,
        cell: StudyCell,
        folder: Path,
        progress: OnProgress,
        *,
        is_begun: bool,
    ) -> None:
        """Train a cell in a folder, to its end. is_begun: whether there is a run to go on with."""
        (diverged,) = self.train_together([cell], [folder], progress, is_begun=is_begun)
        if diverged:
            raise diverged

    def train_together(
        self,
        cells: Sequence[StudyCell],
        folders: Sequence[Path],
        progress: OnProgress,
        *,
        is_begun: bool,
    ) -> list[Diverged | None]:
        """Train cells of one kind side by side, each in its folder, to their ends.

        is_begun: whether there are runs to go on with. Return of each why it diverged, or None.
        UsageError where one of them would have another engine by itself, and so other last bits.
        """
        first = cells[0]
        split = self._read_split(first.split)
        data = self._open_data(split, expand_paths(first.asked["words"]).get("data_root"))
        if is_begun:
            try:
                runs = resume_runs(folders, data, trust=self.trust, progress=progress)
            except OwnCodeChanged as error:
                raise UsageError(
                    f"{error}; of a study: give the plan again (fltrain study PLAN.toml --out "
                    "STUDY), then it has cells of the new code"
                ) from error
        else:
            requests = [restore_request(cell, split, settle_threads(cell)) for cell in cells]
            new = NewFolders(folders)
            with leave_cores():
                runs = train(requests, data, progress, new=new, must_be_as_alone=True)
        return [run.diverged for run in runs]

    def _read_split(self, digest: str) -> niidpart.FederatedSplit:
        if digest not in self._splits:
            self._splits.clear()  # one at a time, as of data sets
            self._splits[digest] = niidpart.read(self.study.find_split(digest))
        return self._splits[digest]

    def require_trust(self, cells: Iterable[StudyCell]) -> None:
        """Raise RunError where cells name code outside fltrain that nobody trusts."""
        require_trust(self.study, cells, self.trust)

    def _open_data(self, split: niidpart.FederatedSplit, root: str | None) -> Data:
        source = split.source
        key = (source.name, repr(source.params), source.content_sha256, split.root, root)
        if key not in self._data:
            self._data.clear()  # one data set at a time: they may be large
            self._data[key] = open_data(split, root)
        return self._data[key]


def settle_threads(cell: StudyCell) -> dict[str, Any]:
    """Return the settings of a cell; on a CPU with one thread, where the plan leaves that open.

    Cells side by side use the cores. No bit then depends on how many workers there are.
    """
    settings = restore_lists(cell.asked["settings"])
    if find_device(cell.device) == "cpu" and settings.get("threads") is None:
        settings["threads"] = 1
    return settings


def count_rounds(folder: Path) -> int:
    """Return the rounds that a run folder could go on from; 0 where it is none yet.

    What cannot be read is no run without rounds: RunError or OSError is raised.
    """
    if not (folder / CONFIG).is_file():
        return 0
    names = list_own_names(PlainFolder(folder).enter(CHECKPOINTS).list_names())
    return RunFolder.open(folder).newest if names else 0


def identify_run(folder: Path) -> dict[str, Any]:
    """Return what tells a finished run from any other: the digests of its history and of what
    it was asked for."""
    opened = RunFolder.open(folder)
    logged = opened.metrics_log.read()
    return {
        "rounds": len(logged),
        "metrics": logged[-1].chain if logged else "",
        "config": opened.configuration.digest,
    }
