"""Studies: cells equal single runs, are done once, go on after kills, and are found when damaged."""

import json
import shutil
import signal
import subprocess
import sys
import time

import pytest

import fltrain
import niidpart
from fltrain.evidence.api import TableRequest, make_tables
from fltrain.evidence.tables import TableAxes
from fltrain.runs.folder import RunFolder
from fltrain.studies import cell_training
from fltrain.studies import worker as workers
from fltrain.studies.api import allow_retries, prepare_study, write_study
from fltrain.studies.claims import ClaimBook
from fltrain.studies.directing import StudyDirector
from fltrain.studies.engines import WORK_ENGINES, WorkEngine
from fltrain.studies.folder import StudyFolder
from fltrain.studies.places import Places
from fltrain.studies.roster import read_cells
from fltrain.studies.standing import StudyWatch
from fltrain.studies.verifying import verify_study
from fltrain.studies.worker import work
from niidpart.errors import UsageError

FIXED = {"model": "linear", "rounds": 2, "local_epochs": 1}
PLAN = {
    "name": "p",
    "algorithms": ["fedavg", {"name": "fedprox", "mu": 0.1}],
    "splits": [{"dataset": "digits", "beta": [0.1, 0.5], "n_parties": 5}],
    "fixed": FIXED,
}


@pytest.fixture
def study(tmp_path):
    return write_study(prepare_study(PLAN), tmp_path / "study")


def list_claims(study, kind):
    return sorted(path.name for path in study.claims.path.glob(f"*.{kind}"))


def test_a_cell_is_the_run_that_the_command_would_give_byte_for_byte(study, tmp_path):
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
        **FIXED,
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
    with pytest.raises(UsageError, match="shares no cell"):
        write_study(prepare_study(other), study.path)
    (study.path.parent / "else").mkdir()
    (study.path.parent / "else" / "file").write_text("mine")
    with pytest.raises(UsageError, match="holds no study"):
        write_study(prepare_study(PLAN), study.path.parent / "else")


def test_a_disk_without_room_is_refused_before_the_first_run(tmp_path, monkeypatch):
    monkeypatch.setattr(StudyFolder, "measure_room", lambda _: 10_000)
    with pytest.raises(UsageError, match=r"take about .* has 10 kB left; make room"):
        write_study(prepare_study(PLAN), tmp_path / "study")
    monkeypatch.setattr(StudyFolder, "measure_room", lambda _: 1_200_000)
    many = PLAN | {"fixed": FIXED | {"rounds": 100, "keep": "all"}}
    with pytest.raises(UsageError, match=r"keep = 'last' in .fixed. needs"):
        write_study(prepare_study(many), tmp_path / "study")


def test_a_failed_cell_stays_with_its_cause_and_is_tried_again_on_demand(study, monkeypatch):
    real, broken = workers.CellTrainer.train, [True]

    def train(self, cell, *given, **named):
        if broken[0] and cell.name.startswith("fedprox"):
            raise OSError(28, "No space left on device")
        return real(self, cell, *given, **named)

    monkeypatch.setattr(workers.CellTrainer, "train", train)
    worked, _ = work(study.path)
    assert len(worked.done) == len(worked.failed) == 2
    end = study.claims.read_end(worked.failed[0], 1)
    assert (end["kind"], end["cause"]) == ("OSError", "[Errno 28] No space left on device")
    broken[0] = False
    assert work(study.path)[0].done == []  # nobody has asked for it
    assert sorted(allow_retries(study, list(read_cells(study)))) == sorted(worked.failed)
    assert len(work(study.path)[0].done) == 2


def test_a_diverged_cell_has_failed_and_the_others_go_on(tmp_path):
    plan = PLAN | {
        "algorithms": ["fedavg"],
        "axes": {"lr": [0.01, 1e30]},
        "fixed": FIXED | {"model": "mlp"},
    }
    study = write_study(prepare_study(plan), tmp_path / "study")
    worked, _ = work(study.path)
    assert (len(worked.done), len(worked.failed)) == (2, 2)
    assert study.claims.read_end(worked.failed[0], 1)["kind"] == "Diverged"


def start_worker(study, *options):
    command = [sys.executable, "-m", "niidpart_cli.train", "work", str(study.path), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_rounds(study, rounds, process):
    """Wait until some run of the study has so many rounds."""
    for _ in range(6000):
        logs = study.path.glob("work/*/run/metrics.jsonl")
        if any(log.read_bytes().count(b"\n") >= rounds for log in logs):
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    raise AssertionError("no round was trained")


@pytest.fixture
def long_study(tmp_path):
    plan = PLAN | {"algorithms": ["scaffold"], "fixed": FIXED | {"rounds": 20}}
    plan = plan | {"splits": [{"dataset": "digits", "beta": 0.5, "n_parties": 5}]}
    return write_study(prepare_study(plan), tmp_path / "study")


def run_alone(study, path):
    ((name, cell),) = read_cells(study).items()
    split = niidpart.read(study.find_split(cell.split))
    settings = FIXED | {"rounds": 20}
    fltrain.run(split, algorithm="scaffold", threads=1, out=path, **settings)
    return study.places.find_cell(name)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_is_ended_in_the_middle_loses_no_bit(long_study, tmp_path, how):
    process = start_worker(long_study)
    wait_for_rounds(long_study, 5, process)
    process.send_signal(how)
    _, said = process.communicate()
    ends = list_claims(long_study, "end")
    if how == signal.SIGTERM:
        assert process.returncode == 143, said
        assert long_study.claims.read_end(ends[0][: -len(".000001.end")], 1)["end"] == "stopped"
    else:
        assert ends == []
    worked, _ = work(long_study.path)
    assert len(worked.done) == 1
    cell = run_alone(long_study, tmp_path / "alone")
    assert (cell / "metrics.jsonl").read_bytes() == (
        tmp_path / "alone" / "metrics.jsonl"
    ).read_bytes()
    assert [path.name for path in long_study.path.glob("work/*") if path.is_dir()] == []
    assert len(list_claims(long_study, "claim")) == 2
    assert fltrain.verify(cell).exit_code == 0


def test_a_scheduler_that_repeats_itself_loses_no_round(long_study):
    process = start_worker(long_study)
    wait_for_rounds(long_study, 5, process)
    for _ in range(3):
        process.send_signal(signal.SIGTERM)
    _, said = process.communicate()
    assert process.returncode == 143, said
    ((name, _),) = read_cells(long_study).items()
    number, run = long_study.places.find_newest(name)
    assert long_study.claims.read_end(name, number)["end"] == "stopped"
    opened = RunFolder.open(run)
    assert opened.newest == len(opened.history) >= 5  # of the last round there is a checkpoint


def test_a_worker_that_was_asleep_is_refused_and_the_cell_is_counted_once(long_study, tmp_path):
    late = start_worker(long_study)
    wait_for_rounds(long_study, 3, late)
    late.send_signal(signal.SIGSTOP)
    ((name, cell),) = read_cells(long_study).items()
    watch = workers.Watch(long_study.workers, lease=0)
    watch.judge(long_study.claims.read_claim(name, 1)["worker"])  # the lease begins
    newcomer = workers.StudyWorker(
        study=long_study,
        cells={name: cell},
        trainer=workers.CellTrainer(long_study, trust=False),
        stopping=workers.Stopping(),
        watch=watch,
    )
    worked = newcomer.work()
    assert worked.done == [name]
    log = long_study.places.find_cell(name) / "metrics.jsonl"
    before = log.read_bytes()
    late.send_signal(signal.SIGCONT)
    said, _ = late.communicate()
    assert late.returncode == 0, said
    assert "0 cells done, 0 failed" in said
    assert log.read_bytes() == before
    run_alone(long_study, tmp_path / "alone")
    assert before == (tmp_path / "alone" / "metrics.jsonl").read_bytes()


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
        watch=workers.Watch(study.workers),
    )
    return worker.work()


def test_a_run_that_is_cut_twice_ends_as_one_that_was_not(long_study, tmp_path):
    assert len(work_for_rounds(long_study, 3).stopped) == 1
    assert len(work_for_rounds(long_study, 7).stopped) == 1
    assert len(work(long_study.path)[0].done) == 1
    cell = run_alone(long_study, tmp_path / "alone")
    alone = (tmp_path / "alone" / "metrics.jsonl").read_bytes()
    assert (cell / "metrics.jsonl").read_bytes() == alone
    assert len(list_claims(long_study, "claim")) == 3


def test_a_cell_that_no_worker_brings_further_fails_and_may_be_tried_again(long_study):
    work_for_rounds(long_study, 3)
    ((name, _),) = read_cells(long_study).items()
    for number in range(2, 7):
        assert long_study.claims.claim(name, number, {"worker": "", "rounds": 3})
        if number % 2:  # told to stop, or killed: then nothing is said
            long_study.claims.end(name, number, {"end": "stopped"})
    assert work(long_study.path, cells=[name])[0].failed == [name]
    end = long_study.claims.read_end(name, 7)
    assert (end["kind"], end["cause"][:44]) == (
        "CellStuck",
        "5 workers in a row ended before its next rou",
    )
    assert allow_retries(long_study, [name]) == [name]
    assert work(long_study.path)[0].done == [name]


def test_the_director_goes_on_while_workers_take_turns_at_a_long_cell(
    long_study, tmp_path, monkeypatch
):
    turns = []

    class Nobody:
        is_cancelled = False

        def count_working(self):
            return 0

        def list_news(self):
            return []

        def let_go(self, *, is_over):
            pass

    def start(order):
        turns.append(order.cells)
        work_for_rounds(long_study, 4 * len(turns))
        return Nobody()

    monkeypatch.setattr(WORK_ENGINES, "record", lambda _: WorkEngine(start))
    director = StudyDirector(
        study=long_study,
        cells=read_cells(long_study),
        trust=False,
        anywhere=False,
        on_standing=lambda *_: None,
        on_news=print,
    )
    assert director.run("local", None, {}).count("done") == 1
    assert turns == [1] * 5  # 20 rounds


def test_what_was_begun_is_done_before_other_cells_are_begun(study):
    names = list(read_cells(study))
    study.claims.claim(names[-1], 1, {"worker": "", "rounds": 0})
    study.claims.end(names[-1], 1, {"end": "stopped"})
    assert work(study.path)[0].done[0] == names[-1]


def test_a_worker_whose_time_is_up_claims_nothing(study):
    worked, _ = work(study.path, limit=1e-9)
    assert worked.done == worked.stopped == []
    assert list_claims(study, "claim") == []


def test_a_run_begun_where_other_bits_are_computed_is_left_or_taken_and_recorded(
    long_study, monkeypatch
):
    work_for_rounds(long_study, 3)
    ((name, _),) = read_cells(long_study).items()
    real = workers.describe_place
    monkeypatch.setattr(workers, "describe_place", lambda d: real(d) | {"instructions": "OTHER"})
    assert work(long_study.path)[0].left == [name]
    worked, _ = work(long_study.path, anywhere=True)
    assert worked.done == [name]
    changes = long_study.claims.read_claim(name, 2)["anywhere"]
    assert changes["instructions"] == [real("cpu")["instructions"], "OTHER"]


def test_two_workers_share_the_cells_and_none_is_done_twice(study):
    both = [start_worker(study), start_worker(study)]
    for process in both:
        said = process.communicate()
        assert process.returncode == 0, said
    assert len(list_claims(study, "end")) == 4
    assert len(study.places.list_done()) == 4


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


def test_damage_of_a_cell_is_found_and_so_is_another_run_in_its_place(study):
    worked, _ = work(study.path)
    whole = verify_study(study.path, fltrain.verify)
    assert [verdict.exit_code for verdict in whole.values()] == [0] * 4
    first, second, *_ = [study.places.find_cell(name) for name in worked.done]
    shutil.rmtree(first)
    shutil.copytree(second, first)
    log = study.places.find_cell(worked.done[2]) / "metrics.jsonl"
    log.write_bytes(log.read_bytes().replace(b"0", b"1", 1))
    found = verify_study(study.path, fltrain.verify)
    assert found[str(second)].exit_code == 0
    swapped = [str(fault) for fault in found[str(first)].faults]
    assert any("the plan asks for" in fault for fault in swapped)
    assert any("it is not the run that was finished" in fault for fault in swapped)
    assert found[str(log.parent)].faults[0].file == "metrics.jsonl"


def test_a_cell_that_is_finished_between_two_looks_is_done_and_not_claimed(study, monkeypatch):
    name = next(iter(read_cells(study)))
    real = Places.list_done

    def finish_after(places):
        done = real(places)
        monkeypatch.setattr(Places, "list_done", real)
        work(study.path, cells=[name])  # another worker, in between
        return done

    monkeypatch.setattr(Places, "list_done", finish_after)
    work(study.path, cells=[name])
    assert list_claims(study, "claim") == [f"{name}.000001.claim"]
    second = next(one for one in read_cells(study) if one != name)
    real_standings = ClaimBook.list_standings

    def finish_before(book, names):
        found = real_standings(book, names)
        monkeypatch.setattr(ClaimBook, "list_standings", real_standings)
        work(study.path, cells=[second])
        return found

    monkeypatch.setattr(ClaimBook, "list_standings", finish_before)
    (cell,) = StudyWatch(study, workers.Watch(study.workers), [second]).look().cells
    assert cell.state == "done"


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


def test_what_the_plan_asks_for_is_held_against_its_name(study):
    work(study.path)
    plan = study.read_plan()
    cells = json.loads(json.dumps(list(plan.cells)))
    cells[0]["asked"]["words"]["metrics"] = ["macro-f1"]  # and the digest is as it was
    study.add_plan(plan.text, cells)
    found = verify_study(study.path, fltrain.verify)
    assert sorted(verdict.exit_code for verdict in found.values()) == [0, 0, 0, 3]
    (told,) = [verdict.unchecked for verdict in found.values() if verdict.unchecked]
    assert "would not be what its name says" in told[0]


def test_claims_are_listed_as_often_for_many_cells_as_for_one(study, monkeypatch):
    work(study.path)
    real, listed = ClaimBook.list_kinds, []

    def count(book):
        listed.append(book)
        return real(book)

    monkeypatch.setattr(ClaimBook, "list_kinds", count)
    assert len(verify_study(study.path, fltrain.verify)) == 4
    assert len(listed) == 2


def test_rounds_that_cannot_be_read_are_not_thrown_away(long_study, monkeypatch):
    work_for_rounds(long_study, 4)
    real, broken = RunFolder.open, [True]

    def open_run(path):
        if broken[0]:
            raise OSError(116, "Stale file handle")
        return real(path)

    monkeypatch.setattr(RunFolder, "open", staticmethod(open_run))
    (name,) = work(long_study.path)[0].failed
    assert long_study.claims.read_end(name, 2)["cause"] == "[Errno 116] Stale file handle"
    broken[0] = False
    assert allow_retries(long_study, [name]) == [name]
    begun = []
    train = workers.CellTrainer.train

    def watch(self, *given, is_begun):
        begun.append(is_begun)
        return train(self, *given, is_begun=is_begun)

    monkeypatch.setattr(workers.CellTrainer, "train", watch)
    assert work(long_study.path)[0].done == [name]
    assert begun == [True]


def test_an_unknown_cell_is_told_with_a_command_that_only_lists(study):
    with pytest.raises(UsageError, match="--watch --json"):
        work(study.path, cells=["none"])


def test_a_cell_that_would_be_another_than_its_name_says_is_refused(tmp_path):
    mine = tmp_path / "mine.py"
    text = (
        "from torch import nn\ndef model(shape, n_classes):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, n_classes))\n"
    )
    mine.write_text(text)
    plan = PLAN | {"fixed": FIXED | {"model": f"{mine}:model"}}
    study = write_study(prepare_study(plan), tmp_path / "study")
    names = list(read_cells(study))
    assert work(study.path, cells=names[:1], trust=True)[0].done == names[:1]
    mine.write_text(text.replace("n_classes))", "n_classes, bias=False))"))
    worked, _ = work(study.path, cells=names[:2], trust=True)
    assert (worked.done, worked.failed) == ([], names[1:2])
    assert "would not be what its name says" in study.claims.read_end(names[1], 1)["cause"]


def test_a_cell_of_another_versions_default_is_refused(study, monkeypatch):
    real = cell_training.settle_threads
    monkeypatch.setattr(cell_training, "settle_threads", lambda cell: real(cell) | {"lr": 0.5})
    worked, _ = work(study.path)
    assert (len(worked.done), len(worked.failed)) == (0, 4)


def test_a_worker_killed_between_the_move_and_its_word_leaves_a_cell_that_is_verified(
    study, monkeypatch
):
    def be_killed(*_):
        raise SystemExit

    name = next(iter(read_cells(study)))
    with monkeypatch.context() as killed:
        killed.setattr(ClaimBook, "end", be_killed)
        with pytest.raises(SystemExit):
            work(study.path, cells=[name])
    assert list_claims(study, "end") == []
    folder = str(study.places.find_cell(name))
    assert verify_study(study.path, fltrain.verify)[folder].exit_code == 0


def test_a_finished_cell_that_is_gone_is_a_fault_and_is_trained_again(study):
    name, other, *_ = read_cells(study)
    work(study.path, cells=[name, other])
    folder = study.places.find_cell(name)
    shutil.rmtree(folder)
    (fault,) = verify_study(study.path, fltrain.verify)[str(folder)].faults
    assert "it was finished and is gone" in str(fault)
    assert work(study.path, cells=[name])[0].done == [name]
    assert [v.exit_code for v in verify_study(study.path, fltrain.verify).values()] == [0, 0]
