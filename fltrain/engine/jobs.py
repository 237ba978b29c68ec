"""What executors are handed: the jobs of a round, of one run or of several side by side."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from niidpart.errors import UsageError

from .. import tree
from ..draws import key
from ..inputs.federated import Federated, PartyExamples
from ..interface import Algorithm, Local, Plan, State, Task, Work
from ..settings import Settings
from ..tasks.model_task import ModelTask
from ..tree import Tree
from .batches import count_steps
from .sums import Sums


@dataclass(frozen=True, eq=False)
class Cell:
    """One run: who trains what, on which data, with which numbers. A sweep has several, side by side."""

    algorithm: Algorithm
    task: ModelTask
    data: Federated
    settings: Settings


class Given(NamedTuple):
    """What all jobs of a cell hear in a round. models, buffers: leading axis M."""

    round: int
    models: Tree
    buffers: Tree
    shared: Tree


class Job(NamedTuple):
    """One party that trains one model, of the cell with that number. each, own: of this job alone, views into plan and state; keep: store `own`."""

    cell: int
    party: int
    model: int
    work: Work
    each: Tree
    own: Tree
    keep: bool


class Done(NamedTuple):
    """job: its place in the list that was handed over; loss: summed over its steps; own: what the party keeps, {} where that is not stored."""

    job: int
    loss: float
    own: Tree


class Executor(Protocol):
    """Trains jobs in any order and any company: what a job gives does not depend on them. Made for some cells; closed when they are trained."""

    def train(
        self, given: Sequence[Given], jobs: Sequence[Job], sums: Sequence[Sums]
    ) -> Iterator[Done]:
        """Each job as it is done. given, sums: by cell; all uploads are in `sums` when this ends, but those of a job whose loss is not finite."""
        ...

    def score(
        self, task: Task, params: Tree, buffers: Tree, examples: PartyExamples, start: int, end: int
    ) -> tuple[int, float]:
        """(number right, summed loss) of one model of a cell on examples start..end: `evaluation.score_model`, or what equals it but for rounding."""
        ...

    def close(self) -> None: ...


Make = Callable[[Sequence[Cell]], Executor]


def ordered(plan: Plan, data: Federated) -> Plan:
    """The plan by ascending party, then model, its weights filled in, without parties that hold nothing. ValueError for a party that there is not."""
    if len(plan.party) and not 0 <= int(plan.party.min()) <= int(plan.party.max()) < data.n_parties:
        raise UsageError(
            f"the plan has parties {plan.party.tolist()}; there are 0..{data.n_parties - 1}"
        )
    sizes = torch.tensor([data.train.size(p) for p in plan.party.tolist()], dtype=torch.int64)
    weight = sizes.double() if plan.weight is None else plan.weight
    at = torch.argsort(plan.model, stable=True)
    at = at[torch.argsort(plan.party[at], stable=True)]
    return _taken(replace(plan, weight=weight), at[sizes[at] > 0])


def jobs_of(index: int, cell: Cell, state: State, plan: Plan, round: int) -> list[Job]:
    """The jobs of an ordered plan, for the cell with number `index`."""
    shares, first, settings = _shares(plan), _first(plan), cell.settings
    jobs = []
    for j, (party, model) in enumerate(zip(plan.party.tolist(), plan.model.tolist(), strict=True)):
        n = cell.data.train.size(party)
        work = Work(
            count_steps(n, settings),
            n,
            float(shares[j]),
            settings.lr_at(round),
            settings.momentum,
            float(first[j]),
        )
        keep = plan.keep is None or bool(plan.keep[j])
        jobs.append(
            Job(
                index,
                party,
                model,
                work,
                tree.index(plan.each, j),
                tree.index(state.parties, party),
                keep,
            )
        )
    return jobs


def local_of(cell: Cell, given: Given, job: Job) -> Local:
    """What the algorithm's `begin` is handed."""
    start, hyper = tree.index(given.models, job.model), cell.algorithm.hyper
    if cell.algorithm.decay == "algorithm":
        hyper = hyper | {"weight_decay": cell.settings.weight_decay}
    return Local(
        params=start,
        buffers=tree.index(given.buffers, job.model),
        start=start,
        shared=given.shared,
        each=job.each,
        own=job.own,
        carry={},
        hyper=hyper,
        key=key(cell.settings.seed, "draws", given.round, job.party, job.model),
    )


def _taken(plan: Plan, at: Tensor) -> Plan:
    """The jobs `at` of a plan."""
    return replace(
        plan,
        party=plan.party[at],
        model=plan.model[at],
        weight=None if plan.weight is None else plan.weight[at],
        keep=None if plan.keep is None else plan.keep[at],
        each=tree.map(lambda leaf: leaf[at.to(leaf.device)], plan.each),
    )


def _first(plan: Plan) -> Tensor:
    """[J] float64: 1 for the first job of each model among those that weigh something, else 0."""
    first, seen = torch.zeros(len(plan.party), dtype=torch.float64), set()
    for j, model in enumerate(plan.model.tolist()):
        if model not in seen and (plan.weight is None or plan.weight[j] > 0):
            first[j] = 1
            seen.add(model)
    return first


def _shares(plan: Plan) -> Tensor:
    """[J] float64: each job's weight in the mean of its model."""
    weight = (
        plan.weight if plan.weight is not None else torch.ones(len(plan.party), dtype=torch.float64)
    )
    sums = torch.zeros(
        int(plan.model.max()) + 1 if len(plan.model) else 0, dtype=torch.float64
    ).index_add_(0, plan.model, weight)
    if (sums[plan.model] <= 0).any():
        raise UsageError(
            f"the plan's weights {weight.tolist()} sum to 0 for a model; its mean cannot be made"
        )
    return weight / sums[plan.model]
