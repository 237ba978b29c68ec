"""A worker process: how it is forked, what it does, and how it ends."""

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

import torch

from niidpart.errors import UsageError

from ...tree import Tree
from ..allocator import keep_memory
from ..forking import FORKING
from ..jobs import Broadcast, Cell, Job
from ..looped import train_job
from ..sums import Sums
from .wire import Failure, decode, describe_failure, encode, rebuild_error

_PR_SET_PDEATHSIG = 1  # of Linux's prctl: the signal that this process gets when its parent ends
_ENDING = {signal.SIGINT, signal.SIGTERM}
_JOIN_SECONDS = 5  # for a worker whose pipe is closed to be gone


class RoundStart(NamedTuple):
    """What a worker receives at the beginning of a round, by the numbers of the cells with jobs."""

    broadcasts: dict[int, Broadcast]
    n_models: dict[int, int]


class Worker(NamedTuple):
    """A worker as its parent sees it."""

    process: BaseProcess
    pipe: Connection

    def send(self, message: memoryview) -> None:
        """Send an encoded message; ChildProcessError where the worker is gone."""
        try:
            self.pipe.send_bytes(message)
        except ConnectionError as error:
            raise self._describe_end() from error

    def receive(self) -> Any:
        """Return what the worker answers; raise what a job raised there."""
        try:
            answer = decode(self.pipe.recv_bytes())
        except (EOFError, ConnectionError) as error:
            raise self._describe_end() from error
        if isinstance(answer, Failure):
            raise _explain(rebuild_error(answer))
        return answer

    def _describe_end(self) -> ChildProcessError:
        """Return the error for a worker that has ended by itself."""
        self.process.join(_JOIN_SECONDS)  # its pipe is closed, so it is about to end
        code = self.process.exitcode or 0
        if code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
        else:
            how = f"ended by itself with exit code {code}"
        if -code == signal.SIGKILL:
            how += ", as the system does where memory runs out"
        return ChildProcessError(
            f"worker process {self.process.pid} {how}; use fewer (--workers; resume takes it too), "
            "or none in a new run (--engine looped)"
        )


def _explain(error: Exception) -> Exception:
    """Return a worker's error; one that the user can avoid comes with how to."""
    if "Unable to handle autograd's threading" not in str(error):
        return error
    explained = UsageError(
        "a forked process cannot use torch's autograd once this one has used it on an accelerator; "
        "start a new process, or use --engine looped"
    )
    explained.__cause__ = error
    return explained


def fork_worker(cells: Sequence[Cell], others: list[Connection]) -> Worker:
    """Start a worker. others: this process's ends of the pipes of the workers that there are."""
    fork = multiprocessing.get_context("fork")
    ours, its = fork.Pipe()
    process = fork.Process(
        target=_work,
        args=(its, [*others, ours], cells, os.getpid()),
        name="fltrain worker",
        daemon=True,
    )
    # Blocked until the worker ignores them: in between they would show a traceback of the worker.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        with FORKING, warnings.catch_warnings():
            # Python 3.12 warns of threads whose locks a fork leaves locked. Those here are torch's,
            # as in its DataLoader, which forks too, and the one that writes checkpoints, which is
            # between two of them. A worker starts no team of more than one thread and writes no
            # checkpoint, so it never waits for a thread that it did not inherit.
            warnings.filterwarnings("ignore", ".*use of fork", DeprecationWarning)
            process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    its.close()  # so that the end of the worker is the end of its pipe
    return Worker(process, ours)


def _work(pipe: Connection, others: list[Connection], cells: Sequence[Cell], parent: int) -> None:
    """Live as a worker.

    In each round it receives what is broadcast to all jobs (`RoundStart`), then jobs, again and
    again, and at last a list of no jobs, which asks for its sums.
    """
    # Ctrl-C goes to all processes of a terminal; the parent decides what it means
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the parent may have a handler, of itself alone
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    for other in others:
        other.close()  # or the end of the parent would not be the end of the pipes
    _end_with(parent)
    keep_memory()
    torch.set_num_threads(1)
    broadcasts: dict[int, Broadcast] = {}
    sums: dict[int, Sums] = {}
    # an end of the pipe: the parent is gone, and so is all that was to be done
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            message = decode(pipe.recv_bytes())
            if isinstance(message, RoundStart):
                broadcasts = message.broadcasts
                sums = {cell: Sums(n) for cell, n in message.n_models.items()}
            else:
                pipe.send_bytes(_answer(cells, broadcasts, message, sums))


def _answer(
    cells: Sequence[Cell],
    broadcasts: dict[int, Broadcast],
    jobs: list[Job],
    sums: dict[int, Sums],
) -> memoryview:
    """Return (loss, own, moved) of each job, encoded; the sums where there is none.

    What goes wrong is an answer, too.
    """
    try:
        if not jobs:
            return encode(sums)
        answers = []
        for job in jobs:
            answers.append(_train(cells[job.cell], broadcasts[job.cell], job, sums))
        return encode(answers)
    except Exception as error:
        return encode(describe_failure(error))


def _train(
    cell: Cell, broadcast: Broadcast, job: Job, sums: dict[int, Sums]
) -> tuple[float, Tree, Tree]:
    """Train one job, add its upload to the sums, and return (loss, own, moved)."""
    trained = train_job(cell, broadcast, job)
    # the upload of a job whose loss is not finite is {}, which adds nothing
    sums[job.cell].add(trained.upload, job.model)
    return trained.loss, job.keep_own(trained.own), trained.moved


def _end_with(parent: int) -> None:
    """End when the parent is gone: on Linux at once, elsewhere after the job."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call above
        os._exit(1)
