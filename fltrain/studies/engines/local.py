"""Processes of this machine, one a GPU, or one a core.

What concerns GPUs has run on processors alone: that a worker sees the one that it was given.
"""

import itertools
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO

from . import Crew, WorkEngine, WorkOrder
from ._processes import explain_end, wait_or_kill

__all__ = ["local"]


def local(order: WorkOrder) -> Crew:
    """Processes of this machine: one for each GPU where cells may use one, else for each core.

    Each sees one GPU (CUDA_VISIBLE_DEVICES), which several share where there are more --workers.
    """
    gpus = list_gpus() if order.can_use_gpu else []
    n = order.workers or len(gpus) or count_cores()
    n = max(1, min(n, order.cells))
    own = [{"CUDA_VISIBLE_DEVICES": gpu} for gpu in gpus]
    places = itertools.cycle(own or [{}])
    return _LocalCrew([_start(order, next(places)) for _ in range(n)])


def list_gpus() -> list[str]:
    """Return the GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    import torch  # help and completion read this file without it

    n_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return named.split(",")[:n_gpus]
    return [str(number) for number in range(n_gpus)]


def count_cores() -> int:
    """Return how many cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class _Process:
    """A worker. said: what it writes to stderr."""

    process: "subprocess.Popen[bytes]"
    said: IO[bytes]

    def explain_end(self) -> str:
        """Return why it ended; "" where it did as it should."""
        with self.said as file:
            file.seek(0)
            return explain_end(self.process.returncode, file.read())


@dataclass
class _LocalCrew:
    running: list[_Process]
    news: list[str] = field(default_factory=list)
    is_cancelled: bool = False

    def count_working(self) -> int:
        for worker in list(self.running):
            if worker.process.poll() is not None:
                self.running.remove(worker)
                self._tell_end(worker)
        return len(self.running)

    def list_news(self) -> list[str]:
        told, self.news = self.news, []
        return told

    def let_go(self, *, is_over: bool) -> None:
        if not is_over:
            for worker in self.running:
                worker.process.send_signal(signal.SIGTERM)
        for worker in self.running:
            wait_or_kill(worker.process)
            self._tell_end(worker)
        self.running.clear()

    def _tell_end(self, worker: _Process) -> None:
        reason = worker.explain_end()
        if reason:
            self.news.append(f"a worker ended: {reason}")


def _start(order: WorkOrder, place: Mapping[str, str]) -> "_Process":
    """Start a worker. place: what its environment has besides."""
    said = tempfile.TemporaryFile()  # noqa: SIM115  a pipe that nobody reads would fill up
    # In a session of its own: Ctrl-C is for the command that waits, which then asks it to stop.
    process = subprocess.Popen(
        order.command,
        env=os.environ | place,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=said,
        start_new_session=True,
    )
    return _Process(process, said)


ENTRY = WorkEngine(start=local)
