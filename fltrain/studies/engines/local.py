"""Processes of this machine, one a core, or one a GPU."""

import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from typing import IO

from . import Crew, WorkEngine, WorkOrder

__all__ = ["local"]

_PATIENCE = 60.0  # seconds for a round of a checkpoint to end


def local(order: WorkOrder) -> Crew:
    """Processes of this machine: one for each core that this one may use."""
    n = order.workers or count_cores()
    n = max(1, min(n, order.cells))
    return _LocalCrew([_start(order) for _ in range(n)])


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
            text = file.read().decode(errors="replace").strip()
        code = self.process.returncode
        if code in (0, 128 + signal.SIGTERM):
            return ""
        return text or f"exit code {code}"


@dataclass
class _LocalCrew:
    running: list[_Process]
    news: list[str] = field(default_factory=list)

    def count_working(self) -> int:
        for worker in list(self.running):
            if worker.process.poll() is not None:
                self.running.remove(worker)
                self._tell_end(worker)
        return len(self.running)

    def list_news(self) -> list[str]:
        told, self.news = self.news, []
        return told

    def stop(self) -> None:
        for worker in self.running:
            worker.process.send_signal(signal.SIGTERM)
        for worker in self.running:
            try:
                worker.process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
            self._tell_end(worker)
        self.running.clear()

    def _tell_end(self, worker: _Process) -> None:
        reason = worker.explain_end()
        if reason:
            self.news.append(f"a worker ended: {reason}")


def _start(order: WorkOrder) -> "_Process":
    said = tempfile.TemporaryFile()  # noqa: SIM115  a pipe that nobody reads would fill up
    # In a session of its own: Ctrl-C is for the command that waits, which then asks it to stop.
    process = subprocess.Popen(
        order.command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=said,
        start_new_session=True,
    )
    return _Process(process, said)


def why_not_local() -> str:
    return ""


ENTRY = WorkEngine(start=local, why_not=why_not_local)
