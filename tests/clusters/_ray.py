"""A Ray cluster of two nodes on this machine, from PyPI's package ray."""

import contextlib
import importlib.util
import os
import secrets
import socket
import subprocess
import sys
from pathlib import Path

from ._machines import Machine, read_tail, running, wait_until, why_not_machines

# Deaf to Ctrl-C, as what a script starts in the background is, and all that it starts.
RAY = ["env", "--ignore-signal=INT", sys.executable, "-m", "ray.scripts.scripts"]
# Workers of Ray yield to all else on a machine, which would have them wait for the tests.
NOT_NICE = {"RAY_worker_niceness": "0"}
PATIENCE = 600.0  # seconds for a node to come up


def why_not_ray_cluster():
    """Why there can be no cluster here; "" where there can."""
    if importlib.util.find_spec("ray") is None:
        return "ray is not installed (pip install ray)"
    return why_not_machines()


class RayCluster:
    """head, second: its two machines. address: where the head answers.

    env: what whoever joins it needs: the token without which it answers nobody. One of its own, since
    Ray else takes that of the user who starts it, where he has one, and a program that gives an
    address does not show it.
    """

    def __init__(self, folder: Path, port: int):
        import ray

        # Ray takes localhost for the machine's own address, for whoever listens and for whoever asks.
        self.address = f"{ray.util.get_node_ip_address()}:{port}"
        token = folder / "token"
        token.write_text(secrets.token_hex(32))
        token.chmod(0o600)
        self.env = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
        self.asked = folder / "asked.log"
        here = ["--num-cpus=1", "--block", "--disable-usage-stats"]
        head = ["start", "--head", f"--port={port}", "--include-dashboard=false", *here]
        # Of an address of its own: a command joins the node that has its machine's, which is not to be lost.
        joined = ["start", f"--address={self.address}", *here, "--node-ip-address=127.0.0.2"]
        env = self.env | NOT_NICE | {"RAY_TMPDIR": str(folder)}
        self.head = Machine([*RAY, *head], env=env, log=folder / "head.log")
        self.second = Machine([*RAY, *joined], env=env, log=folder / "second.log")

    @contextlib.contextmanager
    def run(self):
        """Run the cluster while the block lasts."""
        with running(self.head):
            wait_until(self._is_listening, "Ray's head", PATIENCE, [self.head.log])
            with running(self.second):
                self._wait_for_both()
                yield self

    def _is_listening(self):
        assert self.head.process.poll() is None, read_tail(self.head.log)
        host, _, port = self.address.partition(":")
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
            return True
        return False

    def _wait_for_both(self):
        """Wait until both nodes live, as one program is told that has joined the cluster."""
        code = (
            "import ray, time\n"
            f"ray.init({self.address!r}, log_to_driver=False, logging_level='ERROR')\n"
            "while sum(node['Alive'] for node in ray.nodes()) < 2:\n"
            "    time.sleep(0.1)\n"
        )
        env = os.environ | self.env
        with open(self.asked, "wb") as said:
            asking = subprocess.Popen(
                [sys.executable, "-c", code], env=env, stdout=said, stderr=said
            )
        logs = [self.head.log, self.second.log, self.asked]
        try:
            wait_until(lambda: asking.poll() is not None, "two nodes of Ray", PATIENCE, logs)
        finally:
            asking.kill()
            asking.wait()
        assert asking.returncode == 0, read_tail(self.asked)
