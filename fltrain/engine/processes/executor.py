"""Whole jobs to worker processes of one thread each, for the cores of a CPU."""

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import torch

from niidpart.errors import UsageError

from ... import tree
from ...common import Execution
from .. import evaluation
from ..allocator import keep_memory
from ..jobs import Cell, Done, Given, Job
from ..looped import train_job
from ..sums import Sums
from .wire import Failure, decode, describe_failure, encode, rebuild_error

_PARTS = 8  # a message holds at most this part of a worker's share of the steps that are left: the last ones are small, so that all end together
_BYTES = 64 << 20  # and at most so many bytes of what parties keep, or one job
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl

_DEFAULT = Execution(engine="processes")


class _Worker(NamedTuple):
    process: multiprocessing.process.BaseProcess
    pipe: Connection


class _Heard(NamedTuple):
    """What a worker hears at the beginning of a round, by cell. given: None where the cell has no job; models: how many there are."""

    given: list[Given | None]
    models: list[int]


class Processes:
    """Trains jobs in worker processes, the longest first. The result is that of `Looped` with one thread, bit for bit, for any number of workers.

    Workers are forked at the first round: they inherit cells and data, of which nothing is copied. A worker is sent jobs when it waits for some, and
    sums uploads itself; sums do not depend on their order. An error that stops a round ends the workers; the next round would have new ones.
    """

    score = staticmethod(evaluation.score_model)

    def __init__(self, cells: Sequence[Cell], execution: Execution = _DEFAULT):
        """ValueError where these cells cannot be trained so."""
        for cell in cells:
            require_worker_processes(cell.data.train.y.device.type)
        self.cells = cells
        self.n = execution.workers or count_cores()
        self.workers: list[_Worker] = []

    def train(
        self, given: Sequence[Given], jobs: Sequence[Job], sums: Sequence[Sums]
    ) -> Iterator[Done]:
        """ChildProcessError where a worker dies; what a job raises is raised here."""
        try:
            parts = divide_jobs(jobs, self.n)
            while len(self.workers) < min(self.n, len(parts)):
                self.workers.append(_forked(self.cells, [worker.pipe for worker in self.workers]))
            yield from self._round(given, jobs, sums, parts)
        except BaseException:
            self.close()
            raise

    def _round(
        self,
        given: Sequence[Given],
        jobs: Sequence[Job],
        sums: Sequence[Sums],
        parts: list[list[int]],
    ) -> Iterator[Done]:
        asked = {job.cell for job in jobs}
        heard = encode(
            _Heard(
                [one if i in asked else None for i, one in enumerate(given)],
                [one.n_models for one in sums],
            )
        )
        left = iter(parts)
        busy: dict[Any, tuple[_Worker, list[int]]] = {}
        for worker, part in zip(self.workers, left, strict=False):
            _send(worker, heard)
            _send(worker, encode([jobs[i] for i in part]))
            busy[worker.pipe] = worker, part
        while busy:
            for pipe in wait(list(busy)):
                worker, part = busy.pop(pipe)
                answer = _received(worker)
                if not part:  # it was asked for its sums
                    for mine, its in zip(sums, answer, strict=True):
                        mine.merge(its)
                    continue
                more = next(left, [])
                busy[pipe] = worker, more
                _send(
                    worker, encode([jobs[i] for i in more])
                )  # before what has come is looked at, so that it does not wait
                yield from (Done(i, loss, own) for i, (loss, own) in zip(part, answer, strict=True))

    def close(self) -> None:
        """Ends the workers at once: they hold nothing that would have to be written down."""
        for worker in self.workers:
            worker.process.kill()
            worker.pipe.close()
        for worker in self.workers:
            worker.process.join()
        self.workers = []


def require_worker_processes(device: str) -> None:
    """ValueError where worker processes cannot train on a device ("cpu", "cuda", ...), or this process can have none."""
    if device != "cpu":
        raise UsageError(
            f"engine processes is for the CPU, and the device is {device}; use --engine stacked or looped, or --device cpu"
        )
    if why := why_not_workers():
        raise UsageError(f"engine processes {why}; use --engine looped")


def why_not_workers() -> str:
    """Why this process can have no workers, "" if it can."""
    if "fork" not in multiprocessing.get_all_start_methods():
        return f"forks its workers, which {sys.platform} cannot"
    if multiprocessing.current_process().daemon:
        return "needs child processes, and a daemonic process, such as one of a Pool, has none"
    return ""


def count_cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def divide_jobs(jobs: Sequence[Job], workers: int) -> list[list[int]]:
    """The places of the jobs, as they are handed out: the longest first, one by one where they are long, many together where they are short."""
    out: list[list[int]] = []
    left = sum(job.work.steps for job in jobs)
    aim: Any = 0.0
    steps: Any = 0.0  # of the chunk at hand
    size = 0
    for i in sorted(range(len(jobs)), key=lambda i: (-jobs[i].work.steps, -jobs[i].work.n)):
        job, own = jobs[i], tree.nbytes(jobs[i].own) + tree.nbytes(jobs[i].each)
        if not out or steps + job.work.steps > aim or size + own > _BYTES:
            out.append([])
            left -= steps
            aim, steps, size = left / (workers * _PARTS), 0.0, 0
        out[-1].append(i)
        steps, size = steps + job.work.steps, size + own
    return out


def _forked(cells: Sequence[Cell], others: list[Connection]) -> _Worker:
    """A new worker. others: this process's ends of the pipes of those that there are."""
    fork = multiprocessing.get_context("fork")
    ours, its = fork.Pipe()
    process = fork.Process(
        target=_work,
        args=(its, [*others, ours], cells, os.getpid()),
        name="fltrain worker",
        daemon=True,
    )
    before = signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGINT}
    )  # until the worker ignores it: it would show a traceback
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns of threads whose locks a fork leaves locked. Those here are torch's, as in its DataLoader, which forks too: a worker
            # starts no team of more than one thread, so it never waits for a thread that it did not inherit.
            warnings.filterwarnings("ignore", ".*use of fork", DeprecationWarning)
            process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    its.close()  # so that the end of the worker is the end of its pipe
    return _Worker(process, ours)


def _send(worker: _Worker, message: memoryview) -> None:
    try:
        worker.pipe.send_bytes(message)
    except ConnectionError as error:
        raise _died(worker) from error


def _received(worker: _Worker) -> Any:
    """What a worker answers. What a job raised there is raised here."""
    try:
        answer = decode(worker.pipe.recv_bytes())
    except (EOFError, ConnectionError) as error:
        raise _died(worker) from error
    if isinstance(answer, Failure):
        raise _explained(rebuild_error(answer))
    return answer


def _died(worker: _Worker) -> ChildProcessError:
    worker.process.join(5)  # its pipe is closed, so it is about to end
    code = worker.process.exitcode or 0
    how = (
        f"was ended by {signal.Signals(-code).name}"
        if code < 0
        else f"ended by itself with exit code {code}"
    )
    why = ", as the system does where memory runs out" if -code == signal.SIGKILL else ""
    return ChildProcessError(
        f"worker process {worker.process.pid} {how}{why}; use fewer (--workers; resume takes it too), or none in a new run (--engine looped)"
    )


def _explained(error: Exception) -> Exception:
    """A worker's error, said so that one can do something about it."""
    if "Unable to handle autograd's threading" in str(error):
        said = UsageError(
            "a forked process cannot use torch's autograd once this one has used it on an accelerator; start a new process, or use --engine looped"
        )
        said.__cause__ = error
        return said
    return error


def _work(pipe: Connection, others: list[Connection], cells: Sequence[Cell], parent: int) -> None:
    """The life of a worker: in each round it hears what all jobs hear, then jobs, again and again, and at last is asked for its sums (no jobs)."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C goes to all processes of a terminal; the parent decides
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for other in others:
        other.close()  # or the end of the parent would not be the end of the pipes
    _end_with(parent)
    keep_memory()
    torch.set_num_threads(1)
    given: list[Any] = []
    sums: list[Sums] = []
    with contextlib.suppress(
        EOFError, ConnectionError
    ):  # the parent is gone, and so is all that was to be done
        while True:
            message = decode(pipe.recv_bytes())
            if isinstance(message, _Heard):
                given, sums = message.given, [Sums(n) for n in message.models]
            else:
                pipe.send_bytes(_answer(cells, given, message, sums))


def _answer(
    cells: Sequence[Cell], given: list[Given], jobs: list[Job], sums: list[Sums]
) -> memoryview:
    """(loss, own) of each job; where there is none, the sums. What goes wrong is an answer, too."""
    try:
        return encode(
            [_trained(cells[job.cell], given[job.cell], job, sums[job.cell]) for job in jobs]
            if jobs
            else sums
        )
    except Exception as error:
        return encode(describe_failure(error))


def _trained(cell: Cell, given: Given, job: Job, sums: Sums) -> tuple[float, tree.Tree]:
    upload, own, loss = train_job(cell, given, job)
    sums.add(upload, job.model)
    return loss, own if job.keep else {}


def _end_with(parent: int) -> None:
    """A worker is ended by the kernel when its parent is gone, also in the middle of a job; elsewhere than on Linux it ends after the job."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # gone before that was said
        os._exit(1)
