"""A small study, workers of it, and the run that a cell of it would be alone."""

import subprocess
import sys
import time

import fltrain
import niidpart
from fltrain.studies.folder.roster import read_cells
from fltrain.studies.work import worker as workers

FIXED = {"model": "linear", "rounds": 2, "local_epochs": 1}
PLAN = {
    "name": "p",
    "algorithms": ["fedavg", {"name": "fedprox", "mu": 0.1}],
    "splits": [{"dataset": "digits", "beta": [0.1, 0.5], "n_parties": 5}],
    "fixed": FIXED,
}


def list_claims(study, kind):
    return sorted(path.name for path in study.claims.path.glob(f"*.{kind}"))


def start_worker(study, *options):
    command = [sys.executable, "-m", "niidpart_cli.train", "work", str(study.path), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_rounds(study, rounds, process):
    """Wait until some run of the study has so many rounds."""
    for _ in range(60_000):  # twenty minutes: where others work a worker takes long to load torch
        logs = study.path.glob("work/*/run/metrics.jsonl")
        if any(log.read_bytes().count(b"\n") >= rounds for log in logs):
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    raise AssertionError("no round was trained")


def run_alone(study, path):
    ((name, cell),) = read_cells(study).items()
    split = niidpart.read(study.find_split(cell.split))
    settings = FIXED | {"rounds": 20}
    fltrain.run(split, algorithm="scaffold", threads=1, out=path, **settings)
    return study.places.find_cell(name)


class AfterRounds(workers.Stopping):
    """Stops a worker once a run of the study has so many rounds."""

    @property
    def is_due(self):
        logs = self.study.path.glob("work/*/run/metrics.jsonl")
        return any(log.read_bytes().count(b"\n") >= self.rounds for log in logs)


def work_for_rounds(study, rounds):
    stopping = AfterRounds()
    stopping.study, stopping.rounds = study, rounds
    worker = workers.StudyWorker(
        study=study,
        cells=read_cells(study),
        trainer=workers.CellTrainer(study, trust=False),
        stopping=stopping,
        listener=workers.BeatListener(study.workers),
    )
    return worker.work()
