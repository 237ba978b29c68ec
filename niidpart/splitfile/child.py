"""A child process with limits of memory and time: started, talked to, and ended in every case.

`sandbox.py` reads untrusted files in one, `bounded.py` derives their splits in one. Nothing that
comes back from a child is unpickled; its user checks it.
"""

import contextlib
import json
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, NoReturn, Self

NO_MEMORY = 77  # exit code
_LENGTH = struct.Struct("<Q")
_ROOM = 64 << 20  # bytes that the libraries take for themselves
_PIECE = 1 << 20  # bytes written or read at once
_QUIET = {
    "OPENBLAS_NUM_THREADS": "1",  # each thread would take addresses
    "OMP_NUM_THREADS": "1",
    "HDF5_PLUGIN_PRELOAD": "::",  # no plugins
}


class ChildFailed(Exception):
    """A child gave no answer. The message says how it ended."""


class OutOfMemory(ChildFailed):
    """It took more memory than it may."""


class OutOfTime(ChildFailed):
    """It took more time than it may."""


class FellSilent(ChildFailed):
    """It closed its pipes and lived on."""


class FrameTooLong(ChildFailed):
    """It announced a longer answer than it may give."""


def write_program(module: str) -> str:
    """Return the program of a child that calls `serve` of a module with its arguments."""
    return (
        "import json, sys; sys.path += json.loads(sys.argv[1]); "
        f"from {module} import serve; serve(*sys.argv[2:])"
    )


class Child:
    """The parent's side: a python process that runs a program until `seconds` have passed.

    The child holds itself to its limits (`limit_this_process`); the parent holds it to the time in
    any case. Every method that talks to the child raises ChildFailed where it does not answer.
    """

    def __init__(self, program: str, arguments: Sequence[str], seconds: float):
        self._deadline = time.monotonic() + seconds
        places = json.dumps([p for p in sys.path if p])
        # -P: the folder that the caller stands in may hold untrusted modules.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", program, places, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | _QUIET,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._to_child, self._from_child = self.process.stdin, self.process.stdout
        os.set_blocking(self._to_child.fileno(), False)  # a child that does not read cannot stop us

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def send(self, data: bytes) -> None:
        pipe, rest = self._to_child.fileno(), memoryview(data)
        while rest:
            self._wait_for(pipe, to_write=True)
            try:
                n = os.write(pipe, rest[:_PIECE])
            except BlockingIOError:  # the pipe has some room, but not for this piece
                continue
            except BrokenPipeError:
                self._raise_end()
            rest = rest[n:]

    def receive_frame(self, limit: int) -> bytes:
        """Return the next frame, of at most `limit` bytes."""
        head = bytearray(_LENGTH.size)
        self.fill(memoryview(head))
        (length,) = _LENGTH.unpack(head)
        if length > limit:
            raise FrameTooLong(f"an answer of {length} bytes")
        body = bytearray(length)
        self.fill(memoryview(body))
        return bytes(body)

    def fill(self, target: memoryview) -> None:
        """Receive as many bytes as there is room for."""
        pipe = self._from_child.fileno()
        while len(target):
            self._wait_for(pipe, to_write=False)
            n = os.readv(pipe, [target[:_PIECE]])
            if n == 0:
                self._raise_end()
            target = target[n:]

    def end(self) -> None:
        self.process.kill()
        self._to_child.close()
        self._from_child.close()
        self.process.wait()

    def _wait_for(self, pipe: int, *, to_write: bool) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime("its time is over")
        readable, writable = ([], [pipe]) if to_write else ([pipe], [])
        found = select.select(readable, writable, [], left)
        if not any(found):
            raise OutOfTime("its time is over")

    def _raise_end(self) -> NoReturn:
        """Raise what the child ended of.

        One that has closed its pipes and lives on is given a second, and no longer.
        """
        patience = max(0.0, min(1.0, self._deadline - time.monotonic()))
        try:
            code = self.process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise FellSilent("it stopped answering") from None
        if code == -signal.SIGXCPU:
            raise OutOfTime("its computing time is over")
        if code in (NO_MEMORY, -signal.SIGKILL):  # the system kills where memory ends
            raise OutOfMemory("its memory is used up")
        if code < 0:
            raise ChildFailed(signal.Signals(-code).name)
        raise ChildFailed(f"exit code {code}")


# The child's side.


@contextlib.contextmanager
def answer_parent() -> Iterator[IO[bytes]]:
    """Run the body of a child: gives the stream for its answers, and the exit codes for its end."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    try:
        yield answers
    except MemoryError:
        os._exit(NO_MEMORY)
    except BrokenPipeError:  # the parent has what it wanted
        os._exit(0)


def send_frame(answers: IO[bytes], body: bytes) -> None:
    answers.write(_LENGTH.pack(len(body)) + body)
    answers.flush()


def limit_this_process(memory: int, seconds: int) -> None:
    """Set the limits: bytes beyond what this process has already, seconds of computing."""
    total = _count_address_space() + _ROOM + memory
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash writes nothing to the disk
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    with contextlib.suppress(ValueError):  # macOS knows no limit of addresses
        resource.setrlimit(resource.RLIMIT_AS, (total, total))


def _count_address_space() -> int:
    """Return the bytes of addresses that this process has."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return 1 << 30
    n_pages = statm.read_text().split()[0]
    return int(n_pages) * resource.getpagesize()
