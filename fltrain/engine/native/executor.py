"""Jobs on threads, each trained by one call of compiled code: forward, backward and the optimiser's step fused, the batch in vector lanes."""

import ctypes
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from ...common import Execution
from ...draws import key, order
from ...inputs.federated import PartyExamples
from ...interface import Local, Task
from ...settings import Settings
from ...tree import Tree
from ..batches import fixed_order_key, iterate_in_order
from ..jobs import Cell, Done, Given, Job, make_local
from ..processes import count_cores
from ..ranks import current_ranks
from ..sums import Sums
from ..threads import use_threads
from .arguments import BYTES, StepArguments, address_of, flatten_parameters
from .build import load_library
from .eligibility import require_affine_direction, require_native
from .layers import LayerTable, tabulate_layers
from .scoring import score_examples

_DEFAULT = Execution(engine="native")


class _Flat(NamedTuple):
    """A job's numbers, flat [parameters] float32; None for what there is not. w and velocity are trained in place."""

    w: Tensor
    velocity: Tensor | None
    start: Tensor | None
    add: Tensor | None
    after: Tensor | None
    pull: float


class _Part(NamedTuple):
    """Steps that follow each other. order: rows of x and y, epoch after epoch, `per_epoch` of each."""

    x: Tensor
    y: Tensor
    order: Tensor
    per_epoch: int
    steps: int


class Native:
    """Trains jobs on threads of this process, the longest first. A job is the work of one thread, so the result does not depend on their number.

    The algorithm's own functions run in the thread that asks for the round; only what is between `begin` and `finish` is native. Torch has one
    thread meanwhile: more of them would wait, busily, on the cores that the jobs need.
    """

    def __init__(self, cells: Sequence[Cell], execution: Execution = _DEFAULT):
        """ValueError where these cells cannot be trained so, or nothing can be compiled here."""
        for cell in cells:
            require_native(cell)
        self.cells = cells
        self.layers: dict[Task, LayerTable] = {
            cell.task: tabulate_layers(cell.task.module, cell.data.shape) for cell in cells
        }
        self.library = load_library()
        self.n = count_threads(execution)
        self.stop = ctypes.c_int32(0)
        self.pool = ThreadPoolExecutor(self.n, "fltrain native")

    def train(
        self, given: Sequence[Given], jobs: Sequence[Job], sums: Sequence[Sums]
    ) -> Iterator[Done]:
        """MemoryError where a job's memory cannot be had."""
        with use_threads(1):
            yield from self._jobs(given, jobs, sums)

    def _jobs(
        self, given: Sequence[Given], jobs: Sequence[Job], sums: Sequence[Sums]
    ) -> Iterator[Done]:
        waiting = iter(
            sorted(range(len(jobs)), key=lambda i: (-jobs[i].work.steps, -jobs[i].work.n))
        )
        busy: dict[Future[float], tuple[int, Local, _Flat]] = {}

        def start() -> None:
            if (i := next(waiting, None)) is not None:
                local, flat = self._begun(given[jobs[i].cell], jobs[i])
                busy[self.pool.submit(self._train, jobs[i], flat, given[jobs[i].cell].round)] = (
                    i,
                    local,
                    flat,
                )

        for _ in range(
            self.n + 1
        ):  # one more than there are threads, so that none waits for the next
            start()
        while busy:
            for future in wait(busy, return_when=FIRST_COMPLETED).done:
                i, local, flat = busy.pop(future)
                start()
                yield self._finished(i, jobs[i], local, flat, future.result(), sums[jobs[i].cell])

    def score(
        self, task: Task, params: Tree, buffers: Tree, examples: PartyExamples, start: int, end: int
    ) -> tuple[int, float]:
        """As `evaluation.score_model`, by the compiled forward pass, for the task of one of the cells. The same bits for any number of workers."""
        with use_threads(1):
            return score_examples(
                self.library, self.layers[task], self.pool, params, examples, start, end
            )

    def close(self) -> None:
        """Ends what is still being trained after its step."""
        self.stop.value = 1
        self.pool.shutdown(cancel_futures=True)

    def _begun(self, given: Given, job: Job) -> tuple[Local, _Flat]:
        """The job after `begin`, and what the native step is handed of it."""
        cell, layers = self.cells[job.cell], self.layers[self.cells[job.cell].task]
        task = replace(cell.task, examples=lambda: iterate_in_order(cell.data.train, job.party))
        local = cell.algorithm.begin(task, make_local(cell, given, job))
        terms = require_affine_direction(cell).terms(local)
        w, pull = flatten_parameters(local.params, layers), float(terms.pull)
        return local, _Flat(
            w=w,
            velocity=torch.zeros_like(w) if job.work.momentum else None,
            start=flatten_parameters(local.start, layers) if pull else None,
            add=flatten_parameters(terms.add, layers) if terms.add else None,
            after=flatten_parameters(terms.after, layers) if terms.after else None,
            pull=pull,
        )

    def _finished(
        self, i: int, job: Job, local: Local, flat: _Flat, loss: float, sums: Sums
    ) -> Done:
        if not math.isfinite(loss):
            return Done(i, loss, {})
        cell = self.cells[job.cell]
        sizes = {name: p.shape for name, p in local.params.items()}
        names = self.layers[cell.task].names
        parts = dict(zip(names, flat.w.split([sizes[name].numel() for name in names]), strict=True))
        local = local._replace(
            params={name: parts[name].view(shape) for name, shape in sizes.items()}
        )
        upload, own = cell.algorithm.finish(cell.task, local, job.work)
        sums.add(upload, job.model)
        return Done(i, loss, own if job.keep else {})

    def _train(self, job: Job, flat: _Flat, round: int) -> float:
        """The summed loss of a job, on a thread of the pool; trains flat.w."""
        cell = self.cells[job.cell]
        return math.fsum(
            self._call(job, flat, part)
            for part in _parts(cell.data.train, job, round, cell.settings)
        )

    def _call(self, job: Job, flat: _Flat, part: _Part) -> float:
        cell, ops = self.cells[job.cell], self.layers[self.cells[job.cell].task].ops
        decay = cell.settings.weight_decay if cell.algorithm.decay == "executor" else 0.0
        loss, as_bytes = ctypes.c_double(), BYTES if part.x.dtype == torch.uint8 else None
        asked = StepArguments(
            *(address_of(ops), len(ops), part.x[0].numel(), flat.w.numel()),
            *(address_of(t) for t in (flat.w, flat.velocity, flat.start, flat.add, flat.after)),
            *(job.work.lr, job.work.momentum, decay, flat.pull),
            *(address_of(t) for t in (part.x, as_bytes, part.y, part.order)),
            *(part.per_epoch, cell.settings.batch_size, part.steps, ctypes.addressof(self.stop)),
        )
        if self.library.fltrain_train(ctypes.byref(asked), ctypes.byref(loss)):
            raise MemoryError(
                f"engine native found no memory for the tensors of a batch of party {job.party}; lower --workers or --batch-size"
            )
        return loss.value


def count_threads(execution: Execution) -> int:
    """Threads: as many as the execution names, else as there are cores, divided by the ranks of this machine where several train the run together."""
    ranks = current_ranks().size
    here = (
        int(os.environ.get("LOCAL_WORLD_SIZE", ranks)) if ranks > 1 else 1
    )  # torchrun says it; without it all might be here
    return execution.workers or max(1, count_cores() // here)


def _parts(examples: PartyExamples, job: Job, round: int, settings: Settings) -> Iterator[_Part]:
    """The steps of a job, in the order of `batches`: all at once, or, where examples are prepared, an epoch at a time."""
    n, start, steps = examples.size(job.party), examples.indptr[job.party], int(job.work.steps)
    per_epoch = -(-n // settings.batch_size)
    epochs = -(-steps // per_epoch)
    draws = (
        key(settings.seed, "job", round, job.party)
        if settings.shuffle
        else fixed_order_key(settings.seed)
    )
    orders = [
        order(draws, epoch if settings.shuffle else 0, n, examples.y.device)
        for epoch in range(epochs)
    ]
    prepare = examples.prepare
    if prepare.augment is None and prepare.normalise is None and not prepare.noise:
        rows = slice(start, start + n)
        yield _Part(
            examples.x[rows].contiguous(),
            examples.y[rows].contiguous(),
            torch.cat(orders),
            n,
            steps,
        )
        return
    for epoch, at in enumerate(orders):
        x = examples.inputs(at + start, (round - 1) * epochs + epoch + 1).float().contiguous()
        yield _Part(
            x, examples.y[at + start], torch.arange(n), n, min(per_epoch, steps - epoch * per_epoch)
        )
