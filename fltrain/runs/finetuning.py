"""Models fine-tuned at each party after the last round, and how good they are there."""

import contextlib
import math
import warnings
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .. import tree
from ..algorithms import ALGORITHMS
from ..engine import create_executor
from ..engine.evaluation import describe_parties
from ..engine.execution import Execution
from ..engine.jobs import Broadcast, Cell, Executor, make_jobs, sort_plan
from ..engine.scoring import Candidate, Score, score_models
from ..engine.sums import Sums
from ..interface import Algorithm, Local, Plan, Served, State, Task, Work
from ..tree import Tree
from .evaluating import NEW
from .new_models import choose_models


def finetune(
    cell: Cell, state: State, round: int, execution: Execution, score: Score = score_models
) -> dict[str, Any]:
    """Fine-tune what each party is served on its own training rows, and measure it there.

    By plain steps of the parties' optimiser, for `finetune` epochs at the learning rate of the last
    round; nothing is sent. Return finetuned_party_test_accuracy and what describes it (val too
    where there is such a part), for parties held out as finetuned_new_party_.... A party without
    training rows is measured with what it is served. score: chooses what new parties are served.
    """
    served = cell.algorithm.serve(state, cell.algorithm.hyper)
    metrics = _tune_parties(cell, served, round, execution, "finetuned_")
    new = cell.data.new_parties
    if new is not None:
        served = choose_models(cell, new, state, score)
        there = replace(cell, data=new)
        metrics |= _tune_parties(there, served, round, execution, f"finetuned_{NEW}")
    return metrics


def _tune_parties(
    cell: Cell, served: Served, round: int, execution: Execution, prefix: str
) -> dict[str, Any]:
    """Return what the parties of a cell reach after tuning, under names with that prefix."""
    which = _list_models(served, cell.data.n_parties)
    tuning = _make_tuning_cell(cell, round)
    start = State(served.models, served.buffers)
    plan = sort_plan(Plan(party=torch.arange(cell.data.n_parties), model=which), cell.data)
    jobs = make_jobs(index=0, cell=tuning, state=start, plan=plan, round=round + 1)
    broadcast = Broadcast(round + 1, served.models, served.buffers, {})
    scores = _Scores(tuning)
    with contextlib.closing(create_executor([tuning], execution)) as executor:
        trained = {job.party for job in jobs}
        for party, model in enumerate(which.tolist()):
            if party not in trained:
                own = {"models": served.models, "buffers": served.buffers}
                scores.add(executor, party, tree.index(own, model))
        for done in executor.train({0: broadcast}, jobs, {0: Sums(start.n_models)}):
            party = jobs[done.job].party
            if math.isfinite(done.loss):
                scores.add(executor, party, done.own)
            else:
                _warn_of_divergence(cell.data.find_number(party))
    return scores.describe(prefix)


class _Scores:
    """How many of its rows each party's model has right, by part; None where nobody knows."""

    def __init__(self, cell: Cell):
        self.task = cell.task
        self.data = cell.data
        parts = {"test": cell.data.test, "val": cell.data.val}
        self.parts = {name: part for name, part in parts.items() if len(part.y)}
        self.right: dict[str, list[int | None]] = {
            name: [None] * cell.data.n_parties for name in self.parts
        }

    def add(self, executor: Executor, party: int, own: Tree) -> None:
        for name, part in self.parts.items():
            start, end = part.indptr[party], part.indptr[party + 1]
            tuned = Candidate(own["models"], own["buffers"], part, start, end)
            [(n_right, _)] = executor.score(self.task, [tuned])
            self.right[name][party] = n_right

    def describe(self, prefix: str) -> dict[str, Any]:
        metrics: dict[str, Any] = {}
        for name, part in self.parts.items():
            full_name = f"{prefix}party_{name}_accuracy"
            metrics |= describe_parties(full_name, self.right[name], self.data, part)
        return metrics


def _list_models(served: Served, n_parties: int) -> Tensor:
    """Return the number of the model that each party is served, [P]."""
    if len(served.which) == n_parties:
        return served.which
    return served.which.repeat(n_parties)


def _make_tuning_cell(cell: Cell, round: int) -> Cell:
    """Return the cell that trains by the parties' optimiser alone, and keeps what comes of it."""
    settings = replace(
        cell.settings,
        local_epochs=cell.settings.finetune,
        local_steps=None,
        stragglers=0.0,
        keep_optimizer=False,
        lr=cell.settings.lr_at(round),
        lr_schedule="constant",
        lr_drops=(),
        warmup=0,
    )
    return replace(cell, algorithm=_make_tuner(), settings=settings)


def _make_tuner() -> Algorithm:
    """Return the algorithm of a job that sends nothing and keeps its model."""
    fedavg: Algorithm = ALGORITHMS.find("fedavg")()
    return replace(fedavg, name="finetune", finish=_keep_model)


def _keep_model(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    return {}, {"models": local.params, "buffers": local.buffers}


def _warn_of_divergence(party: int) -> None:
    warnings.warn(
        f"fine-tuning left the finite numbers at party {party}, which has no accuracy then; "
        "try a lower learning rate",
        stacklevel=3,
    )
