"""A Ray cluster of two nodes on this machine, from PyPI's package ray."""

import contextlib
import importlib.util
import subprocess
import sys
from pathlib import Path

from ._machines import Machine, running, wait_until, why_not_machines

RAY = [sys.executable, "-m", "ray.scripts.scripts"]


def why_not_ray_cluster():
    """Why there can be no cluster here; "" where there can."""
    if importlib.util.find_spec("ray") is None:
        return "ray is not installed (pip install ray)"
    return why_not_machines()


class RayCluster:
    """head, second: its two machines. address: where the head answers."""

    def __init__(self, folder: Path, port: int):
        self.address = f"127.0.0.1:{port}"
        here = ["--num-cpus=1", "--block", "--disable-usage-stats"]
        head = [
            "start",
            "--head",
            f"--port={port}",
            "--include-dashboard=false",
            *here,
            "--node-ip-address=127.0.0.1",
        ]
        # Of an address of its own: a command joins the node that has its machine's, which is not to be lost.
        joined = ["start", f"--address={self.address}", *here, "--node-ip-address=127.0.0.2"]
        # Workers of Ray yield to all else on a machine, which would have them wait for the tests.
        env = {"RAY_TMPDIR": str(folder), "RAY_worker_niceness": "0"}
        self.head = Machine([*RAY, *head], env=env, log=folder / "head.log")
        self.second = Machine([*RAY, *joined], env=env, log=folder / "second.log")

    @contextlib.contextmanager
    def run(self):
        """Run the cluster while the block lasts."""
        with running(self.head):
            wait_until(lambda: self.count_nodes() == 1, "Ray's head")
            with running(self.second):
                wait_until(lambda: self.count_nodes() == 2, "Ray's second node")
                yield self

    def count_nodes(self):
        """The nodes that live, as a program of its own is told."""
        code = (
            "import ray, sys\n"
            f"ray.init({self.address!r}, log_to_driver=False, logging_level='ERROR')\n"
            "print(sum(node['Alive'] for node in ray.nodes()))\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        return int(done.stdout) if done.returncode == 0 else 0
