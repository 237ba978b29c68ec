"""The reference executor: one job after another."""

import contextlib
import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .. import tree
from ..counting import count_group
from ..draws import key, torch_seed
from ..interface import Algorithm, Batch, Local, Step
from ..tasks.model_task import ModelTask
from ..tree import Tree
from .base import TorchExecutor
from .batches import iterate_batches, iterate_in_order
from .drift import subtract_weights
from .execution import Execution
from .exhaustion import explain_exhaustion
from .jobs import Broadcast, Cell, Done, Job, make_local
from .rates import Rates
from .sums import Sums
from .threads import use_threads
from .updates import OPTIMIZER, Updates

_DEFAULT = Execution()


class TrainedLocal(NamedTuple):
    """What local training gave.

    loss: summed over the steps, still on the device; optimizer: what the party keeps; moved: {}
    where it is not measured.
    """

    local: Local
    loss: Tensor
    optimizer: Tree
    moved: Tree


class JobOutcome(NamedTuple):
    """What a job gave. own: what the party may keep; moved: as of `Done`.

    No upload, nothing kept and nothing moved where its loss, summed over its steps, is not finite.
    """

    upload: Tree
    own: Tree
    loss: float
    moved: Tree


class Looped(TorchExecutor):
    """Trains jobs in the order in which they come."""

    def __init__(self, cells: Sequence[Cell], execution: Execution = _DEFAULT):
        self.cells, self.execution = cells, execution

    def train(
        self, broadcasts: Mapping[int, Broadcast], jobs: Sequence[Job], sums: Mapping[int, Sums]
    ) -> Iterator[Done]:
        for i, job in enumerate(jobs):
            with explain_exhaustion(self.cells, self.execution):
                trained = train_job(self.cells[job.cell], broadcasts[job.cell], job)
            # the upload of a job whose loss is not finite is {}, which adds nothing
            sums[job.cell].add(trained.upload, job.model)
            yield Done(i, trained.loss, job.keep_own(trained.own), trained.moved)


class OneThread(Looped):
    """Trains in this process as a worker of `Processes` does, with the same bits."""

    def train(
        self, broadcasts: Mapping[int, Broadcast], jobs: Sequence[Job], sums: Mapping[int, Sums]
    ) -> Iterator[Done]:
        with use_threads(1):
            yield from super().train(broadcasts, jobs, sums)


def train_job(cell: Cell, broadcast: Broadcast, job: Job) -> JobOutcome:
    """Train one job."""
    examples = functools.partial(iterate_in_order, cell.data.train, job.party)
    task = cell.task.bind_examples(examples)
    trained = train_locally(
        cell=cell, task=task, local=make_local(cell, broadcast, job), job=job, round=broadcast.round
    )
    loss = float(trained.loss)  # the host waits for the device here alone
    if not math.isfinite(loss):
        return JobOutcome({}, {}, loss, {})
    upload, own = cell.algorithm.finish(task, trained.local, job.work)
    return JobOutcome(upload, own | trained.optimizer, loss, trained.moved)


def train_locally(
    cell: Cell,
    task: ModelTask,
    local: Local,
    job: Job,
    round: int,
) -> TrainedLocal:
    """Return what one job's local training makes of its Local; nothing is read on the host."""
    algorithm, examples, settings = cell.algorithm, cell.data.train, cell.settings
    local = algorithm.begin(task, local)
    # copies, which are trained in place: what `begin` returned may be views into the state
    begun = local.params
    params = tree.clone(begun)
    local = local._replace(params=params, buffers=tree.clone(local.buffers))
    updates = Updates(algorithm, settings, weights=params, work=job.work, kept=job.optimizer)
    device, steps = examples.y.device, int(job.work.steps)
    rates = Rates([settings], [steps], work=job.work, round=round, device=device)
    loss = torch.zeros((), dtype=torch.float64, device=device)
    order_key = key(settings.seed, "job", round, job.party)
    with _seed_torch(device, torch_seed(settings.seed, "module", round, job.party)):
        batches = iterate_batches(examples, job.party, round, order_key, settings, steps)
        for number in range(steps):
            group = itertools.islice(batches, count_group(int(job.work.n), settings, number))
            try:
                step = _direct(algorithm, task, local, group)
            except ValueError as error:
                error.add_note(cell.describe_batches(job.party))
                raise
            updates.apply(step, number, rates.at(number, n=1))
            local = local._replace(buffers=step.buffers, carry=step.carry)
            loss += step.loss
    kept = {OPTIMIZER: updates.keep(steps)} if job.optimizer else {}
    moved = subtract_weights(params, begun) if job.is_measured else {}
    return TrainedLocal(local, loss, kept, moved)


def _direct(algorithm: Algorithm, task: ModelTask, local: Local, batches: Iterator[Batch]) -> Step:
    """Return the algorithm's direction for the batches of one step: their mean, if several.

    Buffers and what is carried go from batch to batch.
    """
    total = algorithm.direction(task, local, next(batches))
    n = 1
    for batch in batches:
        local = local._replace(buffers=total.buffers, carry=total.carry)
        step = algorithm.direction(task, local, batch)
        grad = tree.map(torch.add, total.grad, step.grad)
        after = tree.map(torch.add, total.after, step.after)
        total = step._replace(grad=grad, after=after, loss=total.loss + step.loss)
        n += 1
    if n == 1:
        return total
    return total._replace(
        grad=tree.map(lambda leaf: leaf / n, total.grad),
        after=tree.map(lambda leaf: leaf / n, total.after),
        loss=total.loss / n,
    )


@contextlib.contextmanager
def _seed_torch(device: torch.device, seed: int) -> Iterator[None]:
    """Seed torch's generator for modules that draw by themselves; afterwards it is as before."""
    is_cuda = device.type == "cuda"
    with torch.random.fork_rng([device] if is_cuda else []):
        if is_cuda:
            torch.cuda.manual_seed(seed)
        else:
            torch.default_generator.manual_seed(seed)
        yield
