"""Jobs on threads, each trained by one call of compiled code: forward, backward and the optimiser's step fused, the batch in vector lanes."""

import ctypes
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from ...affine import Corrected
from ...data import Examples
from ...draws import key, order
from ...interface import Local
from ...settings import Settings
from ...task import cross_entropy
from ...tree import Tree
from ..batches import fixed, in_order
from ..jobs import Cell, Done, Given, Job, local_of
from ..looped import EVAL_BATCH
from ..processes import cores
from ..sums import Sums
from .build import library
from .plan import Layers, layers_of

_INSTEAD = "use --engine processes or looped"
_BYTES = torch.arange(256, dtype=torch.uint8).float().div_(255)  # what a byte is worth, as `Examples.inputs` has it


class _Asked(ctypes.Structure):
    """`Asked` of step.cpp."""

    _fields_ = (
        [("ops", ctypes.c_void_p)]
        + [(name, ctypes.c_int64) for name in ("n_ops", "features", "parameters")]
        + [(name, ctypes.c_void_p) for name in ("w", "velocity", "start", "add", "after")]
        + [(name, ctypes.c_float) for name in ("lr", "momentum", "decay", "pull")]
        + [(name, ctypes.c_void_p) for name in ("x", "bytes", "y", "order")]
        + [(name, ctypes.c_int64) for name in ("per_epoch", "batch", "steps")]
        + [("stop", ctypes.c_void_p)]
    )


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

    The algorithm's own functions run in the thread that asks for the round; only what is between `begin` and `finish` is native.
    """

    def __init__(self, cells: Sequence[Cell]):
        """ValueError where these cells cannot be trained so, or nothing can be compiled here."""
        for cell in cells:
            offered(cell)
        self.cells = cells
        self.layers = [layers_of(cell.task.module, cell.data.shape) for cell in cells]
        self.library = library()
        self.n = cells[0].settings.workers or cores()
        self.stop = ctypes.c_int32(0)
        self.pool = ThreadPoolExecutor(self.n, "fltrain native")

    def train(self, given: Sequence[Given], jobs: Sequence[Job], sums: Sequence[Sums]) -> Iterator[Done]:
        """MemoryError where a job's memory cannot be had."""
        waiting = iter(sorted(range(len(jobs)), key=lambda i: (-jobs[i].work.steps, -jobs[i].work.n)))
        busy: dict[Future[float], tuple[int, Local, _Flat]] = {}

        def start() -> None:
            if (i := next(waiting, None)) is not None:
                local, flat = self._begun(given[jobs[i].cell], jobs[i])
                busy[self.pool.submit(self._train, jobs[i], flat, given[jobs[i].cell].round)] = i, local, flat

        for _ in range(self.n + 1):  # one more than there are threads, so that none waits for the next
            start()
        while busy:
            for future in wait(busy, return_when=FIRST_COMPLETED).done:
                i, local, flat = busy.pop(future)
                start()
                yield self._finished(i, jobs[i], local, flat, future.result(), sums[jobs[i].cell])

    def close(self) -> None:
        """Ends what is still being trained after its step."""
        self.stop.value = 1
        self.pool.shutdown(cancel_futures=True)

    def _begun(self, given: Given, job: Job) -> tuple[Local, _Flat]:
        """The job after `begin`, and what the native step is handed of it."""
        cell, layers = self.cells[job.cell], self.layers[job.cell]
        task = replace(cell.task, examples=lambda: in_order(cell.data.train, job.party, EVAL_BATCH))
        local = cell.algorithm.begin(task, local_of(cell, given, job))
        terms = _direction(cell).terms(local)
        w, pull = _flat(local.params, layers), float(terms.pull)
        return local, _Flat(
            w=w,
            velocity=torch.zeros_like(w) if job.work.momentum else None,
            start=_flat(local.start, layers) if pull else None,
            add=_flat(terms.add, layers) if terms.add else None,
            after=_flat(terms.after, layers) if terms.after else None,
            pull=pull,
        )

    def _finished(self, i: int, job: Job, local: Local, flat: _Flat, loss: float, sums: Sums) -> Done:
        if not math.isfinite(loss):
            return Done(i, loss, {})
        cell = self.cells[job.cell]
        sizes = {name: p.shape for name, p in local.params.items()}
        parts = dict(zip(self.layers[job.cell].names, flat.w.split([sizes[n].numel() for n in self.layers[job.cell].names]), strict=True))
        local = local._replace(params={name: parts[name].view(shape) for name, shape in sizes.items()})
        upload, own = cell.algorithm.finish(cell.task, local, job.work)
        sums.add(upload, job.model)
        return Done(i, loss, own if job.keep else {})

    def _train(self, job: Job, flat: _Flat, round: int) -> float:
        """The summed loss of a job, on a thread of the pool; trains flat.w."""
        cell = self.cells[job.cell]
        return math.fsum(self._call(job, flat, part) for part in _parts(cell.data.train, job, round, cell.settings))

    def _call(self, job: Job, flat: _Flat, part: _Part) -> float:
        cell, ops = self.cells[job.cell], self.layers[job.cell].ops
        decay = cell.settings.weight_decay if cell.algorithm.decay == "executor" else 0.0
        loss, as_bytes = ctypes.c_double(), _BYTES if part.x.dtype == torch.uint8 else None
        asked = _Asked(
            *(_address(ops), len(ops), part.x[0].numel(), flat.w.numel()),
            *(_address(t) for t in (flat.w, flat.velocity, flat.start, flat.add, flat.after)),
            *(job.work.lr, job.work.momentum, decay, flat.pull),
            *(_address(t) for t in (part.x, as_bytes, part.y, part.order)),
            *(part.per_epoch, cell.settings.batch_size, part.steps, ctypes.addressof(self.stop)),
        )
        if self.library.fltrain_train(ctypes.byref(asked), ctypes.byref(loss)):
            raise MemoryError(f"engine native found no memory for the tensors of a batch of party {job.party}; lower --workers or --batch-size")
        return loss.value


def offered(cell: Cell) -> None:
    """ValueError where compiled code cannot train a cell, whatever its model."""
    settings = cell.settings
    _direction(cell)
    if (device := cell.data.train.y.device.type) != "cpu":
        raise ValueError(f"engine native is for the CPU, and the device is {device}; use --engine stacked or looped, or --device cpu")
    if cell.task.loss is not cross_entropy:
        raise ValueError(f"engine native knows cross entropy alone, and the task has another loss; {_INSTEAD}")
    for name in ("bf16", "compile"):
        if getattr(settings, name):
            raise ValueError(f"engine native calculates by itself, in float32, so --{name} would do nothing; leave it out, or {_INSTEAD}")


def _direction(cell: Cell) -> Corrected:
    """ValueError where the algorithm's direction is not said as data."""
    direction = cell.algorithm.direction
    if not isinstance(direction, Corrected):
        raise ValueError(
            f"engine native takes algorithms whose steps are the gradient and affine terms (fltrain.affine), and {cell.algorithm.name}'s are not; "
            f"{_INSTEAD}"
        )
    return direction


def _parts(examples: Examples, job: Job, round: int, settings: Settings) -> Iterator[_Part]:
    """The steps of a job, in the order of `batches`: all at once, or, where examples are prepared, an epoch at a time."""
    n, start, steps = examples.size(job.party), examples.indptr[job.party], int(job.work.steps)
    per_epoch = -(-n // settings.batch_size)
    epochs = -(-steps // per_epoch)
    draws = key(settings.seed, "job", round, job.party) if settings.shuffle else fixed(settings.seed)
    orders = [order(draws, epoch if settings.shuffle else 0, n, examples.y.device) for epoch in range(epochs)]
    prepare = examples.prepare
    if prepare.augment is None and prepare.normalise is None and not prepare.noise:
        rows = slice(start, start + n)
        yield _Part(examples.x[rows].contiguous(), examples.y[rows].contiguous(), torch.cat(orders), n, steps)
        return
    for epoch, at in enumerate(orders):
        x = examples.inputs(at + start, (round - 1) * epochs + epoch + 1).float().contiguous()
        yield _Part(x, examples.y[at + start], torch.arange(n), n, min(per_epoch, steps - epoch * per_epoch))


def _flat(values: Tree, layers: Layers) -> Tensor:
    """[parameters] float32, a copy."""
    return torch.cat([values[name].detach().reshape(-1) for name in layers.names]).float()


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
