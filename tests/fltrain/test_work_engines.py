"""What engines make of an order; tests/clusters has them at work on clusters."""

import importlib.util
import sys
import time
from dataclasses import replace

import pytest

import fltrain
from fltrain.studies.engines import WORK_ENGINES, WorkOrder, local
from fltrain.studies.engines._slurm_queue import SlurmCrew
from fltrain.studies.engines.slurm import choose_workers, name_jobs, read_limit, write_script
from niidpart.errors import UsageError

PLAN = {
    "name": "p",
    "algorithms": ["fedavg"],
    "splits": [{"dataset": "digits", "beta": 0.5, "n_parties": 5}],
    "fixed": {"model": "linear", "rounds": 1, "local_epochs": 1},
}


@pytest.fixture
def order(tmp_path):
    """Its workers write which GPUs they see."""
    code = (
        "import os, sys, uuid\n"
        "seen = os.environ.get('CUDA_VISIBLE_DEVICES', 'all')\n"
        "open(os.path.join(sys.argv[1], uuid.uuid4().hex), 'w').write(seen)"
    )
    command = (sys.executable, "-c", code, str(tmp_path))
    return WorkOrder(tmp_path, command, cells=9, seconds=0.0, workers=None)


def list_seen(order):
    crew = local.local(order)
    while crew.count_working():
        time.sleep(0.02)
    crew.let_go(is_over=True)
    assert crew.list_news() == []
    seen = [file.read_text() for file in order.folder.iterdir()]
    for file in order.folder.iterdir():
        file.unlink()
    return sorted(seen)


def test_a_worker_sees_one_gpu_and_none_is_given_where_cells_use_none(order, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(local, "list_gpus", lambda: ["0", "3"])
    assert list_seen(replace(order, can_use_gpu=True)) == ["0", "3"]
    assert list_seen(replace(order, can_use_gpu=True, workers=3)) == ["0", "0", "3"]
    assert list_seen(replace(order, workers=3)) == ["all"] * 3


def test_gpus_are_those_that_this_process_may_use(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert local.list_gpus() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    assert local.list_gpus() == ["5", "7"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert local.list_gpus() == []


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ("30", 1800),
        ("1:30", 90),
        ("2:00:00", 7200),
        ("1-0", 86400),
        ("1-2:30", 95400),
        ("0-0:0:5", 5),
        ("2h", None),
        ("UNLIMITED", None),
    ],
)
def test_limits_are_read_as_slurm_does(given, seconds):
    assert read_limit(given) == seconds


def test_few_cells_take_few_places_of_a_queue(order):
    assert choose_workers(order) == 1
    assert choose_workers(replace(order, seconds=1500.0)) == 3
    assert choose_workers(replace(order, seconds=1e9)) == 9
    assert choose_workers(replace(order, seconds=1e9, cells=900)) == 16


def test_jobs_of_two_studies_of_one_name_are_told_apart(order, tmp_path):
    one = replace(order, folder=tmp_path / "a" / "my skew,1")
    other = replace(order, folder=tmp_path / "b" / "my skew,1")
    assert name_jobs(one).startswith("fltrain-my-skew-1-")
    assert name_jobs(one) != name_jobs(other)


def test_the_script_of_a_job_quotes_what_a_shell_would_read():
    script = write_script(["fltrain", "work", "/my study/$HOME"], per_job=4, cpus=2)
    (step,) = [line for line in script.splitlines() if line.startswith("srun")]
    assert step.endswith("fltrain work '/my study/$HOME'")
    assert "--ntasks=4 --cpus-per-task=2" in step


def test_a_log_that_is_empty_or_gone_is_said(tmp_path):
    crew = SlurmCrew(name="n", logs=tmp_path, states={})
    assert "cannot be read: No such file" in crew._read_log("1_1")
    (tmp_path / "1_1.txt").write_text("")
    assert crew._read_log("1_1").endswith("it is empty")
    (tmp_path / "1_1.txt").write_text("first\nslurmstepd: error: Exceeded job memory limit\n")
    assert crew._read_log("1_1").endswith("ends in: slurmstepd: error: Exceeded job memory limit")


def test_an_engine_that_is_not_there_says_how_it_is_had(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        UsageError, match=r"engine slurm cannot be had here: there is no sbatch.*sl"
    ):
        fltrain.study(PLAN, out=tmp_path / "study", engine="slurm")
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "ray" else real(name, *rest),
    )
    with pytest.raises(UsageError, match=r"ray is not installed; pip install ray .*\[ray\]"):
        fltrain.study(PLAN, out=tmp_path / "study", engine="ray")
    assert list(tmp_path.iterdir()) == []


def test_an_option_of_another_engine_is_refused_by_name(tmp_path):
    with pytest.raises(UsageError, match="'local' has no option 'partition'"):
        fltrain.study(PLAN, out=tmp_path / "study", partition="short")


def test_every_option_says_what_it_is():
    for engine, option in WORK_ENGINES.all_options():
        assert option.help, (engine, option.name)
