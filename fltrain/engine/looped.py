"""The reference executor: one job after another."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from .. import tree
from ..common import Execution
from ..draws import key
from ..interface import Local, Work
from ..tasks.model_task import ModelTask
from ..tree import Tree
from . import evaluation
from .batches import iterate_batches, iterate_in_order
from .jobs import Cell, Done, Given, Job, make_local
from .sums import Sums
from .threads import use_threads

_DEFAULT = Execution()


class Looped:
    """Trains jobs in the order in which they come."""

    score = staticmethod(evaluation.score_model)

    def __init__(self, cells: Sequence[Cell], execution: Execution = _DEFAULT):
        self.cells, self.execution = cells, execution

    def train(
        self, given: Sequence[Given], jobs: Sequence[Job], sums: Sequence[Sums]
    ) -> Iterator[Done]:
        for i, job in enumerate(jobs):
            upload, own, loss = train_job(self.cells[job.cell], given[job.cell], job)
            sums[job.cell].add(upload, job.model)
            yield Done(i, loss, own if job.keep else {})

    def close(self) -> None:
        pass


class OneThread(Looped):
    """As a worker of `Processes` trains, with the same bits, in this process."""

    def train(
        self, given: Sequence[Given], jobs: Sequence[Job], sums: Sequence[Sums]
    ) -> Iterator[Done]:
        with use_threads(1):
            yield from super().train(given, jobs, sums)


def train_job(cell: Cell, given: Given, job: Job) -> tuple[Tree, Tree, float]:
    """(upload, own, summed loss) of one job; no upload and no own where its loss is not finite."""
    task = replace(cell.task, examples=lambda: iterate_in_order(cell.data.train, job.party))
    local, loss = _trained(
        cell, task, make_local(cell, given, job), job.work, job.party, given.round
    )
    if not math.isfinite(loss):
        return {}, {}, loss
    return *cell.algorithm.finish(task, local, job.work), loss


def _trained(
    cell: Cell, task: ModelTask, local: Local, work: Work, party: int, round: int
) -> tuple[Local, float]:
    """One job's local training: the optimiser is SGD with momentum, its state fresh. Returns the summed loss besides."""
    algorithm, data, settings = cell.algorithm, cell.data, cell.settings
    local = algorithm.begin(task, local)
    local = local._replace(
        params=tree.clone(local.params), buffers=tree.clone(local.buffers)
    )  # trained in place; what they were stays
    velocity = tree.zeros_like(local.params) if work.momentum else {}
    decay = settings.weight_decay if algorithm.decay == "executor" else 0.0
    loss = torch.zeros((), dtype=torch.float64, device=data.train.y.device)
    device, seed = data.train.y.device, key(settings.seed, "module", round, party) >> 1
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        (torch.cuda if device.type == "cuda" else torch.default_generator).manual_seed(
            seed
        )  # for modules that draw by themselves
        for batch in iterate_batches(
            data.train, party, round, key(settings.seed, "job", round, party), settings
        ):
            try:
                step = algorithm.direction(task, local, batch)
            except ValueError as error:
                error.add_note(
                    f"that was party {party}, of {data.train.size(party)} examples, in batches of {settings.batch_size}"
                )
                raise
            sgd(local.params, step.grad, velocity, step.after, work, decay)
            local = local._replace(buffers=step.buffers, carry=step.carry)
            loss += step.loss
    return local, float(loss)


def sgd(params: Tree, grad: Tree, velocity: Tree, after: Tree, work: Work, decay: float) -> None:
    """As torch.optim.SGD, operation by operation; updates params and velocity in place, which belong to this job alone."""
    weights, step = list(params.values()), [grad[name] for name in params]
    if decay:
        step = torch._foreach_add(step, weights, alpha=decay)
    if velocity:
        moving = list(velocity.values())
        torch._foreach_mul_(moving, work.momentum)
        torch._foreach_add_(moving, step)
        step = moving
    if after:
        step = torch._foreach_add(step, [after[name] for name in params])
    torch._foreach_add_(weights, step, alpha=-work.lr)
