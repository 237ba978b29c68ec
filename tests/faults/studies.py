"""A worker of a study that tunes: it decides who has won, and trains that, while faults come."""

import shutil
from pathlib import Path
from typing import Any

from scenarios import NEW, OLD, Scenario, call_whole, make_split, write_data

_PLAN: dict[str, Any] = {
    "name": "tuned",
    "algorithms": ["fedavg"],
    "seeds": {"split": 0, "init": 0, "order": 0},
    "splits": [{"file": "split.h5"}],
    "fixed": {
        "model": "linear",
        "rounds": 2,
        "local_epochs": 1,
        "engine": "looped",
        "checkpoint_every": 1,  # else a clock says after which rounds
    },
    "tuning": {"method": "grid", "space": {"lr": [0.1, 0.01]}},
}


def _prepare() -> None:
    """Make a study of which all is done but to decide who has won; and as it is in the end."""
    from fltrain.studies.api import prepare_study, write_study
    from fltrain.studies.folder.roster import read_cells
    from fltrain.studies.work.worker import work

    write_data(60)
    call_whole(make_split(1, "split.h5", "--val", "0.3"))
    study = write_study(prepare_study(_PLAN), Path("study"))
    work("study", cells=list(read_cells(study)))  # whoever has cells of his own decides nothing
    shutil.copytree("study", "wanted")
    work("wanted")


def _work() -> None:
    from niidpart_cli.train import main

    main(["work", "study"])


def _try_again() -> None:
    """Do what `fltrain study STUDY --retry-failed` does, without a process of its own."""
    from fltrain.studies.folder.retries import allow_retries
    from fltrain.studies.folder.roster import read_cells
    from fltrain.studies.folder.study_folder import StudyFolder

    study = StudyFolder.open("study")
    allow_retries(study, list(read_cells(study)))
    _work()


def _read_state(said: str) -> str:
    """NEW for a study that ended as the undisturbed one; OLD for one that goes on to there."""
    import fltrain
    from fltrain.studies.folder.study_folder import StudyFolder
    from fltrain.studies.verifying import verify_study

    faults = [one.faults for one in verify_study("study", fltrain.verify).values() if one.faults]
    if faults:
        return f"the study is damaged: {faults}"
    places = StudyFolder.open("study").places
    wanted = StudyFolder.open("wanted").places
    done, all_of_them = places.list_done(), wanted.list_done()
    for name in done:
        log, undisturbed = places.find_cell(name), wanted.find_cell(name)
        if _read_log(log) != _read_log(undisturbed):
            return f"{name} ended with other metrics"
    if "1 cells done" in said and done != all_of_them:
        return "a cell was said to be done, and is not"
    # What killed workers left of cells that are done is removed by whoever comes to the end.
    return NEW if done == all_of_them and not places.list_left() else OLD


def _read_log(run: Path) -> bytes:
    return (run / "metrics.jsonl").read_bytes()


def list_study_scenarios() -> list[Scenario]:
    return [_work_on("study-tuned"), _work_on("study-winners", within="study/winners")]


def _work_on(name: str, within: str = "") -> Scenario:
    """within: the folder that faults are in."""
    return Scenario(
        name,
        _prepare,
        _work,
        _read_state,
        _try_again,
        varies="study/",  # how often a cell was claimed, and so what lies there, the fault decides
        within=within,
        writes=not within,  # a power cut would take what lies elsewhere too
    )
