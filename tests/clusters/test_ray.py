"""A study on a Ray cluster of two nodes: nothing that happens to its workers changes a bit, or does a cell twice."""

import contextlib
import os
import signal
from pathlib import Path

from ._machines import EndedEarlier, strike, wait_for_end, wait_until
from ._ray import NOT_NICE
from ._studies import (
    ENDLESS,
    count_rounds,
    list_holders,
    require_each_done_once,
    require_equal_to_single_runs,
    write_plan,
)

# alone: how many cells are trained again by themselves. lease: seconds until a worker of the lost
# node is given up.
SIZES = {
    "small": {"cells": 4, "rounds": 100, "alone": 1, "lease": 15},
    "sample": {"cells": 8, "rounds": 200, "alone": 2, "lease": 15},
    "full": {"cells": 48, "rounds": 200, "alone": 48, "lease": 60},
}


def list_workers(path):
    """The processes of this study's workers, as this machine numbers them."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"work" in words and str(path).encode() in words:
                found.append(int(process.name))
    return found


def stop_workers(path):
    """Send SIGTERM to all workers, and wait until these have ended."""
    workers = set(list_workers(path))
    for worker in workers:
        os.kill(worker, signal.SIGTERM)
    wait_until(lambda: not workers.intersection(list_workers(path)), "that they end")


def test_workers_that_are_stopped_twice_and_a_lost_node_change_no_bit(
    ray_cluster, size, start_study, tmp_path
):
    cells, rounds, n_alone, lease = SIZES[size].values()

    def stop_twice_and_lose_a_node(rounds):
        folder = tmp_path / str(rounds)
        folder.mkdir()
        write_plan(folder, cells=cells, rounds=rounds)
        path, said = folder / "study", folder / "said.txt"
        options = ("--engine", "ray", "--address", ray_cluster.address, "--lease", str(lease))
        process = start_study(folder, "plan.toml", "--out", "study", *options, env=ray_cluster.env)

        def wait_at_work(is_so, what):
            wait_until(lambda: process.poll() is not None or is_so(), what, logs=[said])
            if process.poll() is not None:
                assert process.returncode == 0, said.read_text()
                raise EndedEarlier(what)

        def are_two():
            # The claim of a worker that was lost with its node stands until another takes it over.
            return len(list_workers(path)) == 2 <= len(list_holders(path))

        for _ in range(2):
            wait_at_work(are_two, "two workers at work")
            stop_workers(path)
        wait_at_work(are_two, "two workers at work")
        wait_at_work(lambda: count_rounds(path) > 4, "rounds")
        ray_cluster.second.lose()
        ray_cluster.second.start()
        assert wait_for_end(process, said, 3000) == 0, said.read_text()
        return path

    path = strike(stop_twice_and_lose_a_node, rounds)
    require_each_done_once(path)
    require_equal_to_single_runs(path, tmp_path / "alone", n_alone)


def test_ctrl_c_stops_the_workers_and_an_address_without_a_cluster_is_said(
    ray_cluster, start_study, tmp_path
):
    write_plan(tmp_path, cells=4, rounds=ENDLESS)
    path = tmp_path / "study"
    said = tmp_path / "said.txt"
    options = ("--engine", "ray", "--address", ray_cluster.address)
    process = start_study(tmp_path, "plan.toml", "--out", "study", *options, env=ray_cluster.env)
    wait_until(lambda: len(list_holders(path)) >= 2, "two cells in work", logs=[said])
    process.send_signal(signal.SIGINT)
    assert wait_for_end(process, said) == 130
    assert list_holders(path) == {}
    assert list_workers(path) == []
    refused = start_study(tmp_path, "study", "--engine", "ray", "--address", "127.0.0.1:9")
    assert wait_for_end(refused, said) == 2
    assert "no Ray cluster answers at 127.0.0.1:9" in said.read_text()


def test_a_cluster_is_started_for_the_purpose(size, start_study, tmp_path):
    write_plan(tmp_path, cells=4, rounds=1)
    said = tmp_path / "said.txt"
    # Ray keeps a token for whoever starts a cluster, in that user's home.
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": os.path.expanduser("~/.cache")}
    options = ("--engine", "ray", "--workers", "1")
    process = start_study(tmp_path, "plan.toml", "--out", "study", *options, env=home | NOT_NICE)
    assert wait_for_end(process, said) == 0, said.read_text()
    require_each_done_once(tmp_path / "study")
