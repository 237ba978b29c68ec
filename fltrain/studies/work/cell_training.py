"""One cell of a study is trained, or gone on with, as `fltrain.run` and `resume` do it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import niidpart
from niidpart.data import Data
from niidpart.data.of_split import open_data

from ...algorithms import build
from ...checkpoints.names import list_own_names
from ...disk.plain_folder import PlainFolder
from ...engine.processes.availability import leave_cores
from ...runs.api import run
from ...runs.configuration import CONFIG
from ...runs.events import Progress
from ...runs.folder import CHECKPOINTS, RunFolder
from ...runs.requests import find_device
from ...runs.resuming import resume
from ...settings import SETTINGS
from ..cells.cell import StudyCell, require_same_cell, restore_lists
from ..folder.study_folder import StudyFolder
from ..plans.plan_checks import expand_paths

_FOR_RUN = ("model", "preset", "data_root", "metrics", "loss", "init_from", "init_from_partial")


@dataclass
class CellTrainer:
    """Trains cells one after another; what they share of data is read once."""

    study: StudyFolder
    trust: bool
    _data: dict[Any, Data] = field(default_factory=dict)

    def train(
        self,
        cell: StudyCell,
        folder: Path,
        progress: Callable[[Progress], None],
        *,
        is_begun: bool,
    ) -> None:
        """Train a cell in a folder, to its end. is_begun: whether there is a run to go on with."""
        split = niidpart.read(self.study.find_split(cell.split))
        asked = expand_paths(cell.asked["words"])
        words = {key: asked[key] for key in _FOR_RUN if key in asked}
        data = self._open_data(split, words.get("data_root"))
        if is_begun:
            resume(folder, data, trust=self.trust, progress=progress)
            return
        settings = settle_threads(cell)
        require_same_cell(cell, split, settings)
        algorithm = build(cell.asked["algorithm"], **restore_lists(cell.asked["options"]))
        with leave_cores():
            run(
                split,
                data,
                algorithm=algorithm,
                out=folder,
                progress=progress,
                **words,
                **settings,
            )

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
    device = settings.get("device", SETTINGS["device"].default)
    if find_device(device) == "cpu" and settings.get("threads") is None:
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
