"""A study on a SLURM cluster of two nodes: nothing that happens to its jobs changes a bit, or does a cell twice."""

import re
import signal

import pytest

from fltrain.studies.folder.study_folder import StudyFolder

from ._machines import EndedEarlier, strike, wait_for_end, wait_until
from ._studies import (
    ENDLESS,
    count_rounds,
    list_holders,
    require_each_done_once,
    require_equal_to_single_runs,
    write_plan,
)

# SLURM looks at limits every half minute, and says the word up to a minute too early: with these it comes after 20
# to 50 seconds, and cells take longer than so many words. alone: how many are trained again by themselves.
# minutes: the limit; in the small size no job is cut, since that alone takes longer than all else.
# lease: seconds until a worker of the lost node is given up.
SIZES = {
    "small": {"cells": 4, "rounds": 300, "minutes": 60, "cuts": 0, "alone": 1, "lease": 15},
    "sample": {"cells": 8, "rounds": 800, "minutes": 1, "cuts": 1, "alone": 2, "lease": 15},
    "full": {"cells": 48, "rounds": 400, "minutes": 1, "cuts": 2, "alone": 48, "lease": 60},
}


def list_jobs(slurm):
    """The study's jobs that wait or run, and how often each began anew."""
    numbers = slurm.call(
        "squeue", "--noheader", "--array", "--partition=work", "--format=%A"
    ).split()
    shown = [slurm.call("scontrol", "show", "job", "-o", number) for number in numbers]
    return {
        number: int(re.search(r"Restarts=(\d+)", job)[1])
        for number, job in zip(numbers, shown, strict=True)
    }


def count_running(slurm):
    asked = ("--noheader", "--array", "--partition=work", "--states=RUNNING", "--format=%A")
    return len(slurm.call("squeue", *asked).split())


def empty_queue(slurm, logs):
    """End what a lost node's job, begun anew, has left when its study was done without it."""
    slurm.call("scancel", "--partition=work")
    wait_until(lambda: not list_jobs(slurm), "that the queue is empty", logs=logs)


def preempt_all(slurm):
    """Have a job that is worth more take both nodes for a moment."""
    slurm.call("srun", "--partition=urgent", "--nodes=2", "--ntasks=2", "sleep", "1")


def test_a_lost_node_time_limits_and_preemption_change_no_bit(slurm, size, start_study, tmp_path):
    cells, rounds, minutes, cuts, n_alone, lease = SIZES[size].values()
    options = ("--workers", "2", "--time", str(minutes), "--grace", "10", "--lease", str(lease))

    def begin(rounds):
        """Start a study, and return it with its command when both workers train."""
        folder = tmp_path / str(rounds)
        folder.mkdir()
        write_plan(folder, cells=cells, rounds=rounds)
        path, said = folder / "study", folder / "said.txt"
        asked = ("plan.toml", "--out", "study", "--engine", "slurm", *options)
        process = start_study(folder, *asked, env=slurm.env)

        def is_over_or_begun():
            if process.poll() is not None:
                return True
            return len(list_holders(path)) == 2 and count_rounds(path) > 4

        wait_until(is_over_or_begun, "two cells in work", logs=[said, slurm.log])
        if process.poll() is not None:
            assert process.returncode == 0, said.read_text()
            raise EndedEarlier("two cells in work")
        return path, process

    path, process = strike(begin, rounds)
    logs = [path.parent / "said.txt", slurm.log]

    def is_over():
        return process.poll() is not None

    slurm.nodes["node2"].lose()
    # Where cells are small and the machine is quick, the other node has them all before.
    is_missed = "that the node is missed"
    wait_until(lambda: is_over() or slurm.count_nodes("down*") == 1, is_missed, logs=logs)
    slurm.nodes["node2"].start()
    restarts = {}

    def is_cut(times):
        restarts.update({} if is_over() else list_jobs(slurm))
        return is_over() or (len(restarts) == 2 and min(restarts.values()) >= times)

    wait_until(lambda: is_cut(cuts), "that every job is cut", 1800, logs)
    assert min(restarts.values(), default=0) >= cuts, restarts
    wait_until(lambda: is_over() or count_running(slurm), "a job", 600, logs)
    if not is_over():
        preempt_all(slurm)
    assert wait_for_end(process, logs[0], 3000) == 0, logs[0].read_text()
    require_each_done_once(path)
    require_equal_to_single_runs(path, tmp_path / "alone", n_alone)
    wait_until(lambda: not slurm.count_nodes("down*"), "that both nodes are back", logs=logs)
    empty_queue(slurm, logs)


def test_jobs_outlive_the_shell_are_found_again_and_scancel_frees_their_cells(
    slurm, start_study, tmp_path
):
    write_plan(tmp_path, cells=4, rounds=ENDLESS)
    path = tmp_path / "study"
    long = ("--engine", "slurm", "--workers", "2", "--time", "60")
    process = start_study(tmp_path, "plan.toml", "--out", "study", *long, env=slurm.env)
    said = tmp_path / "said.txt"
    logs = [said, slurm.log]
    wait_until(lambda: len(list_holders(path)) == 2, "two cells in work", logs=logs)
    process.send_signal(signal.SIGHUP)  # as of a terminal that is closed
    wait_for_end(process, said)
    jobs = list_jobs(slurm)
    assert len(jobs) == 2
    again = start_study(tmp_path, "study", *long, env=slurm.env)
    wait_until(
        lambda: "of this study in the queue already" in said.read_text(),
        "that the jobs are found",
        logs=logs,
    )
    assert list_jobs(slurm).keys() == jobs.keys()
    again.send_signal(signal.SIGINT)
    assert wait_for_end(again, said) == 130
    (numbers,) = re.findall(r"scancel ([0-9 ]+) ends them", said.read_text())
    slurm.call("scancel", *numbers.split())
    wait_until(lambda: not list_jobs(slurm), "that the jobs end", logs=logs)
    assert list_holders(path) == {}
    study = StudyFolder.open(path)
    ends = [end.name.rsplit(".", 2) for end in study.claims.path.glob("*.end")]
    assert [study.claims.read_end(name, int(number))["end"] for name, number, _ in ends] == [
        "stopped"
    ] * 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--partition", "none"), "sbatch refused the jobs: sbatch: error: invalid partition"),
        (("--time", "1"), "nothing is left to train in"),
        (("--address", "here"), "address"),
    ],
)
def test_what_cannot_be_submitted_is_said(slurm, start_study, tmp_path, options, said):
    write_plan(tmp_path, cells=4, rounds=1)
    done = start_study(tmp_path, "plan.toml", "--engine", "slurm", *options, env=slurm.env)
    assert wait_for_end(done, tmp_path / "said.txt") == 2
    assert said in (tmp_path / "said.txt").read_text()
