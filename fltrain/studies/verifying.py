"""Whether the cells of a study are whole, are those that were finished, and were asked for."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from niidpart.errors import FileFault

from ..disk.plain_folder import RunError
from ..runs.folder import RunFolder
from ..verification.verdict import RunFault, RunVerdict
from .cell_training import read_end
from .cells import StudyCell
from .folder import StudyFolder
from .worker import read_cells

_WRITTEN = ("checkpoint_every", "checkpoint_share", "keep")
_OF_THE_MACHINE = (*_WRITTEN, "threads", "workers", "memory", "device")


def verify_study(
    path: str | Path, verify_run: Callable[[str], RunVerdict]
) -> dict[str, RunVerdict]:
    """Return the verdict of each cell that is, or was, finished, by its folder.

    verify_run: checks a run folder by itself. RunError where the study itself is damaged.
    """
    study = StudyFolder.open(path)
    cells = read_cells(study)
    # Claims first: a cell that is finished meanwhile is there, and not gone.
    ended = [name for name in cells if study.claims.find_done(name)]
    done = study.places.list_done()
    verdicts = {}
    for name, cell in cells.items():
        folder = study.places.find_cell(name)
        if name in done:
            verdicts[str(folder)] = _verify_cell(study, cell, folder, verify_run)
        elif name in ended:
            what = f"it was finished and is gone; fltrain study {path} trains it again"
            verdicts[str(folder)] = RunVerdict([RunFault(".", None, what)], unchecked=[])
    return verdicts


def _verify_cell(
    study: StudyFolder, cell: StudyCell, folder: Path, verify_run: Callable[[str], RunVerdict]
) -> RunVerdict:
    """Return the verdict of a cell; what keeps it from being read is its one fault."""
    try:
        verdict = verify_run(str(folder))
        if verdict.faults:
            return verdict
        end, config = read_end(folder), RunFolder.open(folder).config
    except FileFault as error:
        return RunVerdict(faults=[RunFault(".", None, str(error))], unchecked=[])
    faults = [RunFault("config.json", None, what) for what in _list_unasked(cell, config)]
    stated = study.claims.find_done(cell.name) or study.claims.find_trained(cell.name)
    unchecked = list(verdict.unchecked)
    if not stated:
        unchecked.append("no claim says how this cell ended: its worker was killed as it finished")
    else:
        differing = [key for key, value in end.items() if stated.get(key) != value]
        if differing:
            what = f"it is not the run that was finished: {', '.join(differing)} differ"
            faults.append(RunFault(".", None, what))
    return replace(verdict, faults=faults, unchecked=unchecked)


def _list_unasked(cell: StudyCell, config: Mapping[str, Any]) -> list[str]:
    """Return, in words, what a run folder was asked for that its cell does not ask for."""
    asked = cell.asked
    algorithm = config["algorithm"]
    pairs = {
        "split": (cell.split, config["split"]),
        "algorithm": (asked["algorithm"], algorithm["spec"]),
        "options": (asked["options"], json.loads(json.dumps(algorithm["options"]))),
    }
    for name, value in asked["settings"].items():
        if name not in _OF_THE_MACHINE:
            pairs[name] = (value, config["settings"].get(name))
    if isinstance(asked["words"].get("model"), str):
        pairs["model"] = (asked["words"]["model"], config["model"])
    return [
        f"{name} is {found!r}, and the plan asks for {wanted!r}"
        for name, (wanted, found) in pairs.items()
        if not _is_equal(wanted, found)
    ]


def _is_equal(wanted: Any, found: Any) -> bool:
    """Return whether a value is the one asked for: 1 and 1.0 are, and names of own files by end."""
    if isinstance(wanted, str) and isinstance(found, str) and ":" in wanted:
        return wanted.rpartition("/")[2] == found.rpartition("/")[2]
    return bool(wanted == found)


def require_finished(path: str | Path) -> None:
    """Raise RunError where no cell of a study is finished: nothing can be verified yet."""
    if not StudyFolder.open(path).places.list_done():
        raise RunError(f"no cell of {path} is finished yet; fltrain study {path} goes on with it")
