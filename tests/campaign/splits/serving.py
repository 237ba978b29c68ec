"""The process of the untrusted reader, forked with all modules loaded, for many files one after the other.

A process for each file is most of what reading it costs. A file that ends or stops its process does so here too, and
the next one gets a new process.
"""

import contextlib
import os
import select
import signal
import time
import uuid
from collections.abc import Iterator
from typing import IO
from unittest import mock

from niidpart.splitfile import child, sandbox

_FILES = 100  # that one process reads
_PATIENCE = 10  # seconds for a process to come to the end of a file


class Server:
    """Has the process that reads, and another one when that is needed."""

    def __init__(self) -> None:
        self.process: ServingProcess | None = None

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Let it read what is read as untrusted."""
        with mock.patch.object(child.subprocess, "Popen", self._begin):
            yield

    def end(self) -> None:
        """Leave no process behind. Without this it ends when the one that asks it does."""
        if self.process is not None:
            self.process.end()

    def _begin(self, command: list[str], **_) -> "OneFile":
        *_, path, memory, seconds = command
        asked = (path, int(memory), int(float(seconds)) + 1)
        if self.process is None or not self.process.can_read(asked):
            self.end()
            self.process = ServingProcess(asked)
        return OneFile(self.process)


class ServingProcess:
    """A forked process with the limits of the untrusted reader, and the pipes to it.

    asked: the path at which each file is when it is read, bytes of memory, seconds of computing.
    """

    def __init__(self, asked: tuple[str, int, int]):
        self.asked = asked
        self.returncode: int | None = None
        self.n_files = 0
        question, self.to_child = os.pipe()
        self.from_child, answer = os.pipe()
        self.pid = _fork()
        if self.pid == 0:
            self._serve(question, answer)
        os.close(question)
        os.close(answer)

    def can_read(self, asked: tuple[str, int, int]) -> bool:
        """Whether it lives, has read fewer files than it may, and has that path and those limits."""
        return self.returncode is None and self.n_files < _FILES and self.asked == asked

    def _serve(self, question: int, answer: int) -> None:
        """Read the file each time that a line comes; the same line ends what is asked of it."""
        path, *limits = self.asked
        code = 1
        try:
            for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
                signal.setitimer(timer, 0)
            os.dup2(question, 0)
            os.dup2(answer, 1)
            for number in (question, answer, self.to_child, self.from_child):
                os.close(number)
            with child.answer_parent() as answers:
                questions = os.fdopen(os.dup(0))
                sandbox.confine_this_process(*limits)
                for mark in iter(questions.readline, ""):
                    asked = _read_until(mark, questions)
                    sandbox._answer(path, answers, asked)
                    for _ in asked:  # what is asked of a file that was refused
                        pass
                    answers.write(mark.encode())
                    answers.flush()
            code = 0
        finally:
            os._exit(code)

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self.to_child)
            os.close(self.from_child)
        return self.returncode

    def end(self) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()


class OneFile:
    """As much of `subprocess.Popen` as `splitfile.child` uses, for one file."""

    def __init__(self, process: ServingProcess):
        self._process, self._is_over = process, False
        self._mark = f"{uuid.uuid4().hex}\n".encode()  # in no file
        process.n_files += 1
        self.stdin = os.fdopen(os.dup(process.to_child), "wb", 0)
        self.stdout = os.fdopen(os.dup(process.from_child), "rb", 0)
        with contextlib.suppress(BrokenPipeError):  # who asks sees that it is no more
            os.write(process.to_child, self._mark)

    def kill(self) -> None:
        """Have the process ready for the next file, or end it."""
        if self._process.returncode is None and not self._reach_mark():
            self._process.end()
        self._is_over = True

    def _reach_mark(self) -> bool:
        """Take all that still comes."""
        pipe, last = self._process.from_child, b""
        try:
            os.write(self._process.to_child, self._mark)
        except (BrokenPipeError, BlockingIOError):
            return False
        while not last.endswith(self._mark):
            piece = os.read(pipe, 1 << 16) if select.select([pipe], [], [], _PATIENCE)[0] else b""
            if not piece:
                return False
            last = (last + piece)[-len(self._mark) :]
        return True

    def wait(self, timeout: float | None = None) -> int | None:
        """How the process ended; None for one that goes on with the next file."""
        return self._process.returncode if self._is_over else self._process.wait()


def _read_until(mark: str, questions: IO[str]) -> Iterator[str]:
    """The lines before the mark, or before the end, where the process that asks is no more."""
    for line in iter(questions.readline, ""):
        if line == mark:
            return
        yield line


def _fork() -> int:
    """Fork, and wait where the machine has no process left: that is no fault of the file."""
    while True:
        try:
            return os.fork()
        except BlockingIOError:
            time.sleep(1)
