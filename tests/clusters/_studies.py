"""A study for clusters, and what has to hold of it however it came to its end."""

import fltrain
import niidpart
from fltrain.runs.folder import RunFolder
from fltrain.studies.folder.claims import DONE
from fltrain.studies.folder.roster import read_cells
from fltrain.studies.folder.study_folder import StudyFolder, is_study
from fltrain.studies.verifying import verify_study

ENDLESS = 100_000  # rounds of cells that are to be ended from outside
PLAN = """
name = "cells"
trials = {trials}
[fixed]
model = "mlp"
local_epochs = 1
rounds = {rounds}
[[algorithms]]
name = "fedavg"
[[algorithms]]
name = "scaffold"
[[splits]]
dataset = "digits"
strategy = "dir"
beta = [0.1, 0.5]
n_parties = 10
"""


def write_plan(folder, *, cells, rounds):
    """Write a plan of so many cells, a multiple of 4."""
    (folder / "plan.toml").write_text(PLAN.format(trials=cells // 4, rounds=rounds))
    return folder / "plan.toml"


def count_rounds(path):
    """The rounds that runs of a study have written which are not finished."""
    logs = path.glob("work/*/run/metrics.jsonl")
    return sum(log.read_bytes().count(b"\n") for log in logs if not log.parent.parent.is_symlink())


def list_holders(path):
    """The workers that hold cells now, by cell; none where there is no study yet."""
    if not is_study(path) or StudyFolder.open(path).find_plan() is None:
        return {}
    study = StudyFolder.open(path)
    standings = study.claims.list_standings(read_cells(study))
    held = {name: one.number for name, one in standings.items() if not one.is_ended}
    return {name: study.claims.read_claim(name, n).get("worker", "") for name, n in held.items()}


def require_each_done_once(path):
    """Every cell has one claim that finished it, is whole, and leaves nothing behind."""
    study = StudyFolder.open(path)
    cells = read_cells(study)
    assert study.places.list_done() == set(cells)
    ends = {}
    for end in study.claims.path.glob("*.end"):
        name, number, _ = end.name.rsplit(".", 2)
        how = study.claims.read_end(name, int(number))["end"]
        ends.setdefault(name, []).append(how)
    # A worker that is killed between the move and its word leaves none; it was not done twice then either.
    assert all(hows.count(DONE) <= 1 for hows in ends.values()), ends
    assert sum(hows.count(DONE) for hows in ends.values()) >= len(cells) - 2
    assert [entry.name for entry in (path / "work").iterdir() if entry.is_dir()] == []
    verdicts = verify_study(path, fltrain.verify)
    assert len(verdicts) == len(cells)
    assert all(not verdict.faults for verdict in verdicts.values()), verdicts


def require_equal_to_single_runs(path, alone, count):
    """So many cells have the bytes of the same run by itself, which is trained in the folder `alone`."""
    study = StudyFolder.open(path)
    for name, cell in list(read_cells(study).items())[:count]:
        split = niidpart.read(study.find_split(cell.split))
        words, settings = cell.asked["words"], cell.asked["settings"]
        algorithm = fltrain.algorithms.build(cell.asked["algorithm"], **cell.asked["options"])
        fltrain.run(split, algorithm=algorithm, threads=1, out=alone / name, **words, **settings)
        of_cell, single = RunFolder.open(study.places.find_cell(name)), RunFolder.open(alone / name)
        assert of_cell.config == single.config, name
        assert (of_cell.path / "metrics.jsonl").read_bytes() == (
            single.path / "metrics.jsonl"
        ).read_bytes()
