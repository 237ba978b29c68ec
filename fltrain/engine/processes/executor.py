"""Whole jobs to worker processes of one thread each, for the cores of a CPU."""

from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import wait
from typing import Any

from ... import tree
from ..base import TorchExecutor
from ..execution import Execution
from ..jobs import Broadcast, Cell, Done, Job
from ..sums import Sums
from .availability import count_cores, require_worker_processes
from .wire import encode
from .workers import RoundStart, Worker, fork_worker

# A message holds at most this part of a worker's share of the steps that are left: the last
# messages are small, so that all workers end together.
_PARTS = 8
_MOST_BYTES = 64 << 20  # and at most so many bytes of what parties keep, or one job
_DEFAULT = Execution(engine="processes")


class Processes(TorchExecutor):
    """Trains jobs in worker processes, the longest first.

    The result is that of `Looped` with one thread, bit for bit, for any number of workers. Workers
    are forked at the first round: they inherit cells and data, of which nothing is copied. A worker
    is sent jobs when it waits for some, and sums uploads itself; sums do not depend on their order.
    An error that stops a round ends the workers; the next round would have new ones.

    The untrusted files that niidpart reads in a child process need limits on memory, time and
    system calls, and one answer. Workers are this process's own code on its own data, live for a
    whole run, and take messages of many MB: they share no harness with that one.
    """

    def __init__(self, cells: Sequence[Cell], execution: Execution = _DEFAULT):
        """Check that workers can train these cells here, or raise a UsageError."""
        for cell in cells:
            require_worker_processes(cell.data.train.y.device.type)
        self.cells = cells
        self.n = execution.workers or count_cores()
        self.workers: list[Worker] = []

    def train(
        self, broadcasts: Mapping[int, Broadcast], jobs: Sequence[Job], sums: Mapping[int, Sums]
    ) -> Iterator[Done]:
        """Train the jobs; ChildProcessError where a worker dies.

        What a job raises in a worker is raised here.
        """
        try:
            chunks = divide_jobs(jobs, self.n)
            while len(self.workers) < min(self.n, len(chunks)):
                others = [worker.pipe for worker in self.workers]
                self.workers.append(fork_worker(self.cells, others))
            yield from self._run_round(broadcasts, jobs, sums, chunks)
        except BaseException:
            self.close()
            raise

    def _run_round(
        self,
        broadcasts: Mapping[int, Broadcast],
        jobs: Sequence[Job],
        sums: Mapping[int, Sums],
        chunks: list[list[int]],
    ) -> Iterator[Done]:
        """Hand out the chunks, one to each worker that waits; at last collect the sums."""
        start = encode(_start_round(broadcasts, jobs, sums))
        left = iter(chunks)
        busy: dict[Any, tuple[Worker, list[int]]] = {}  # by pipe; [] for one asked for its sums
        for worker, chunk in zip(self.workers, left, strict=False):
            worker.send(start)
            worker.send(encode([jobs[i] for i in chunk]))
            busy[worker.pipe] = worker, chunk
        while busy:
            for pipe in wait(list(busy)):
                worker, chunk = busy.pop(pipe)
                answer = worker.receive()
                if not chunk:
                    for cell, sums_of_worker in answer.items():
                        sums[cell].merge(sums_of_worker)
                    continue
                # before the answer is looked at, so that the worker does not wait for that
                following = next(left, [])
                busy[pipe] = worker, following
                worker.send(encode([jobs[i] for i in following]))
                for i, (loss, own, moved) in zip(chunk, answer, strict=True):
                    yield Done(i, loss, own, moved)

    def close(self) -> None:
        """End the workers at once: they hold nothing that would have to be written down."""
        for worker in self.workers:
            worker.process.kill()
            worker.pipe.close()
        for worker in self.workers:
            worker.process.join()
        self.workers = []


def _start_round(
    broadcasts: Mapping[int, Broadcast], jobs: Sequence[Job], sums: Mapping[int, Sums]
) -> RoundStart:
    """Return what is broadcast to all workers; nothing of a cell without jobs."""
    training = {job.cell for job in jobs}
    return RoundStart(
        broadcasts={cell: broadcasts[cell] for cell in training},
        n_models={cell: sums[cell].n_models for cell in training},
    )


def _sort_longest_first(jobs: Sequence[Job]) -> list[tuple[int, Job]]:
    """Return the jobs with their places, by steps and then examples."""
    return sorted(enumerate(jobs), key=lambda one: (-one[1].work.steps, -one[1].work.n))


def divide_jobs(jobs: Sequence[Job], workers: int) -> list[list[int]]:
    """Return the places of the jobs in chunks, as they are given out: the longest jobs first.

    One by one where they are long, many together where they are short.
    """
    chunks: list[list[int]] = []
    left = float(sum(job.work.steps for job in jobs))  # steps of the chunks still to be made
    most = 0.0  # steps that the chunk at hand may have
    steps, size = 0.0, 0  # steps and bytes that it has
    for i, job in _sort_longest_first(jobs):
        n_steps = float(job.work.steps)
        n_bytes = tree.nbytes(job.own) + tree.nbytes(job.each) + tree.nbytes(job.optimizer)
        if not chunks or steps + n_steps > most or size + n_bytes > _MOST_BYTES:
            chunks.append([])
            left -= steps
            most = left / (workers * _PARTS)
            steps, size = 0.0, 0
        chunks[-1].append(i)
        steps += n_steps
        size += n_bytes
    return chunks
