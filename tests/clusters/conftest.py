"""Clusters on this machine. NIIDPART_TEST_CLUSTERS=small, sample or full has them started."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ._ray import RayCluster, why_not_ray_cluster
from ._slurm import SlurmCluster, why_not_slurm_cluster

PORTS = {"slurm": 36817, "ray": 36879}


@pytest.fixture(scope="session")
def size():
    asked = os.environ.get("NIIDPART_TEST_CLUSTERS", "")
    if asked not in ("small", "sample", "full"):
        pytest.skip("clusters are for `make clusters` (NIIDPART_TEST_CLUSTERS=small, sample, full)")
    return asked


@pytest.fixture(scope="module")
def slurm(size, tmp_path_factory):
    reason = why_not_slurm_cluster()
    if reason:
        pytest.skip(reason)
    with SlurmCluster(tmp_path_factory.mktemp("slurm"), PORTS["slurm"]).run() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def ray_cluster(size):
    reason = why_not_ray_cluster()
    if reason:
        pytest.skip(reason)
    # A short path: sockets lie in it, whose paths have 107 signs at most.
    scratch = tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)
    with scratch as folder, RayCluster(Path(folder), PORTS["ray"]).run() as cluster:
        yield cluster


@pytest.fixture
def start_study():
    """start_study(folder, *options, env): `fltrain study` as from a shell in a folder, which has said.txt then."""
    started = []
    # Commands hear Ctrl-C and a terminal that is closed, also where pytest was started in the
    # background or by nohup, and told to ignore them.
    heard = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, how) for number, how in heard.items()}

    def start(folder, *options, env=None):
        command = [sys.executable, "-m", "niidpart_cli.train", "study", *options]
        with open(folder / "said.txt", "ab") as said:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=os.environ | (env or {}),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
    for number, how in before.items():
        signal.signal(number, how)
