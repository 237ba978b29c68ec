"""Studies: cells equal single runs, are done once, and plans may grow."""

import pytest

import fltrain
import niidpart
from fltrain.evidence.api import TableRequest, make_tables
from fltrain.evidence.tables import TableAxes
from fltrain.runs.folder import RunFolder
from fltrain.studies.api import prepare_study, write_study
from fltrain.studies.folder import standing
from fltrain.studies.folder.claims import ClaimBook
from fltrain.studies.folder.roster import read_cells
from fltrain.studies.folder.standing import StudyWatch
from fltrain.studies.folder.study_folder import StudyFolder
from fltrain.studies.verifying import verify_study
from fltrain.studies.work.worker import work
from niidpart.errors import UsageError

from ._studies import FIXED, PLAN, work_for_rounds


def test_a_cell_is_the_run_that_the_command_would_give_byte_for_byte(tmp_path):
    how = FIXED | {"checkpoint_every": 1}  # else the clock says which checkpoints there are
    study = write_study(prepare_study(PLAN | {"fixed": how}), tmp_path / "study")
    worked, _ = work(study.path)
    assert len(worked.done) == 4
    cells = read_cells(study)
    name = next(name for name in worked.done if name.startswith("fedprox"))
    split = niidpart.read(study.find_split(cells[name].split))
    fltrain.run(
        split,
        algorithm=fltrain.algorithms.fedprox(mu=0.1),
        threads=1,
        out=tmp_path / "alone",
        **how,
    )
    of_cell, alone = study.places.find_cell(name), tmp_path / "alone"
    for file in ("metrics.jsonl", "split.h5"):
        assert (of_cell / file).read_bytes() == (alone / file).read_bytes()
    assert RunFolder.open(of_cell).config == RunFolder.open(alone).config
    for file in (alone / "checkpoints").glob("*.safetensors"):
        assert (of_cell / "checkpoints" / file.name).read_bytes() == file.read_bytes()


def test_what_is_done_is_not_done_again_also_when_the_plan_grows(study):
    work(study.path)
    before = {path: path.stat().st_mtime_ns for path in study.path.glob("cells/*/metrics.jsonl")}
    assert work(study.path)[0].done == []
    grown = PLAN | {"algorithms": ["solo", *PLAN["algorithms"]]}
    write_study(prepare_study(grown), study.path)
    worked, _ = work(study.path)
    assert len(worked.done) == 2
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())


def test_a_folder_of_another_study_is_refused(study):
    with pytest.raises(UsageError, match="is the study 'p', and the plan is called 'q'"):
        write_study(prepare_study(PLAN | {"name": "q"}), study.path)
    other = PLAN | {"fixed": FIXED | {"rounds": 3}}
    work(study.path, cells=list(read_cells(study))[:1])
    with pytest.raises(UsageError, match="shares no cell"):
        write_study(prepare_study(other), study.path)
    (study.path.parent / "else").mkdir()
    (study.path.parent / "else" / "file").write_text("mine")
    with pytest.raises(UsageError, match="holds no study"):
        write_study(prepare_study(PLAN), study.path.parent / "else")


def test_a_plan_none_of_whose_cells_is_finished_may_be_given_anew(tmp_path):
    mine = tmp_path / "mine.py"
    code = "from torch import nn\n\ndef model(shape, n_classes):\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10{}))\n"
    mine.write_text(code.format(", bias=False"))
    plan = PLAN | {"algorithms": ["fedavg"], "fixed": FIXED | {"model": f"{mine}:model"}}
    study = write_study(prepare_study(plan), tmp_path / "study")
    work_for_rounds(study, 1)
    before = set(read_cells(study))
    mine.write_text(code.format(""))
    failed = work(study.path, trust=True)[0]
    assert set(failed.failed) == before
    assert any("give the plan again" in cause for cause in failed.causes.values())
    write_study(prepare_study(plan), study.path)
    assert not before.intersection(read_cells(study))
    assert len(work(study.path, trust=True)[0].done) == 2


def test_a_disk_without_room_is_refused_before_the_first_run(tmp_path, monkeypatch):
    monkeypatch.setattr(StudyFolder, "measure_room", lambda _: 10_000)
    with pytest.raises(UsageError, match=r"take about .* has 10 kB left; make room"):
        write_study(prepare_study(PLAN), tmp_path / "study")
    monkeypatch.setattr(StudyFolder, "measure_room", lambda _: 1_200_000)
    many = PLAN | {"fixed": FIXED | {"rounds": 100, "keep": "all"}}
    with pytest.raises(UsageError, match=r"keep = 'last' in .fixed. needs"):
        write_study(prepare_study(many), tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_the_time_that_is_left_is_told_once_enough_was_seen(study, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(standing.time, "monotonic", lambda: clock[0])
    watch, names = StudyWatch(study), list(read_cells(study))

    def tell(second, *rounds):
        clock[0] = second
        cells = [
            standing.CellStanding(name, "running", rounds=(round, 100))
            for name, round in zip(names, rounds, strict=True)
        ]
        return watch.estimate_left(standing.StudyStanding("p", cells))

    assert tell(0, 0, 0, 0, 0) is None
    assert tell(50, 1, 0, 0, 0) is None  # torch was loaded: the clock begins here
    assert tell(55, 20, 1, 0, 0) is None  # too soon, though rounds enough
    assert tell(70, 5, 1, 0, 0) is None  # too few rounds
    assert tell(150, 51, 50, 0, 0) == pytest.approx(299.0)  # 1 cell in 100 s, 2.99 to come


def test_what_was_begun_is_done_before_other_cells_are_begun(study):
    names = list(read_cells(study))
    study.claims.claim(names[-1], 1, {"worker": "", "rounds": 0})
    study.claims.end(names[-1], 1, {"end": "stopped"})
    assert work(study.path)[0].done[0] == names[-1]


def test_code_of_ones_own_is_run_only_where_it_is_trusted(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from torch import nn\ndef model(shape, n_classes):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, n_classes))\n"
    )
    plan = PLAN | {"fixed": FIXED | {"model": f"{tmp_path}/mine.py:model"}}
    study = write_study(prepare_study(plan), tmp_path / "study")
    with pytest.raises(fltrain.RunError, match="--trust"):
        work(study.path)
    assert len(work(study.path, trust=True)[0].done) == 4


def test_the_python_call_takes_the_words_of_a_plan_and_gives_tables(tmp_path):
    done = fltrain.study(PLAN, out=tmp_path / "study", workers=1)
    assert done.standing.count("done") == 4
    assert list((tmp_path / "study" / "workers").iterdir()) == []  # no process stays behind
    (table,) = done.table(by=["algorithm"])
    assert [(row.where["algorithm"], row.n) for row in table.rows] == [
        ("fedavg", 2),
        ("fedprox", 2),
    ]
    runs = [RunFolder.open(path) for path in sorted((tmp_path / "study" / "cells").iterdir())]
    values = [r.history[-1]["test_accuracy"] for r in runs if "fedavg" in r.path.name]
    assert table.rows[0].mean == pytest.approx(sum(values) / 2)
    assert table.rows[0].std == pytest.approx(abs(values[0] - values[1]) / 2**0.5)


def test_a_row_with_a_missing_cell_has_no_mean_unless_parts_are_asked_for(study):
    cells = list(read_cells(study).values())
    work(study.path, cells=[cells[0].name])
    whole = TableRequest(TableAxes(by=["algorithm"]))
    (table,) = make_tables([study.path], whole)
    assert (table.rows[0].n, table.rows[0].cells, table.rows[0].mean) == (1, 2, None)
    (table,) = make_tables([study.path], TableRequest(TableAxes(by=["algorithm"], partial=True)))
    assert table.rows[0].mean is not None


def test_a_study_that_was_killed_as_it_was_made_is_made(tmp_path):
    (tmp_path / "study" / "plans").mkdir(parents=True)
    assert write_study(prepare_study(PLAN), tmp_path / "study").find_plan()
    (tmp_path / "else" / "plans" / "mine").mkdir(parents=True)
    with pytest.raises(UsageError, match="holds no study"):
        write_study(prepare_study(PLAN), tmp_path / "else")


def test_a_plan_that_was_torn_is_given_again(study):
    plans = study.path / "plans"
    (plans / "2.json").write_bytes(b"")  # of a kill, where the disk has no links
    assert study.read_plan().number == 1
    whole = (plans / "1.json").read_bytes()
    (plans / "3.json").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(fltrain.RunError, match=r"is damaged .* gives it the plan again"):
        read_cells(study)
    write_study(prepare_study(PLAN), study.path)
    assert (study.read_plan().number, len(read_cells(study))) == (4, 4)


def test_claims_are_listed_as_often_for_many_cells_as_for_one(study, monkeypatch):
    work(study.path)
    real, listed = ClaimBook.list_kinds, []

    def count(book):
        listed.append(book)
        return real(book)

    monkeypatch.setattr(ClaimBook, "list_kinds", count)
    assert len(verify_study(study.path, fltrain.verify)) == 4
    assert len(listed) == 2


def test_an_unknown_cell_is_told_with_a_command_that_only_lists(study):
    with pytest.raises(UsageError, match="--watch --json"):
        work(study.path, cells=["none"])
