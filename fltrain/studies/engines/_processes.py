"""A worker as a process that an engine has started: how it is ended, and why it has ended."""

import signal
import subprocess

PATIENCE = 60.0  # seconds for a round of a checkpoint to end
_ENDED_WELL = (0, 128 + signal.SIGTERM, -signal.SIGTERM)


def wait_or_kill(process: "subprocess.Popen[bytes]") -> None:
    """Wait for a worker that was asked to stop; kill it where that takes too long."""
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def explain_end(code: int, said: bytes) -> str:
    """Return why a worker ended; "" where it did as it should.

    code: its exit code. said: what it wrote to stderr.
    """
    if code in _ENDED_WELL:
        return ""
    return said.decode(errors="replace").strip() or f"exit code {code}"
