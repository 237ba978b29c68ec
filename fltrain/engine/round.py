"""One round: the jobs of all cells to the executor, what they give back into each cell's state."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from niidpart.errors import UsageError

from .. import tree
from ..interface import Plan, State
from ..tree import Tree
from .diverged import Diverged, at_party, at_server, finite
from .jobs import Cell, Done, Executor, Given, Job, jobs_of, ordered
from .ranks import ALONE, Ranks
from .sums import Sums


@dataclass(frozen=True, eq=False)
class Trained:
    """A cell's outcome. plan: the jobs that ran, in their order; loss: mean training loss over the steps of the jobs that weigh something;
    steps: optimiser steps over all jobs."""

    state: State
    plan: Plan
    loss: float
    steps: int


def train_round(
    cells: Sequence[Cell],
    states: Sequence[State],
    plans: Sequence[Plan | None],
    round: int,
    executor: Executor,
    on_job: Callable[[int, int], None] = lambda done, jobs: None,
    ranks: Ranks = ALONE,
) -> list[Trained | Diverged | None]:
    """Trains every job of every cell's plan, and aggregates. Jobs of parties without examples are left out.

    `parties` of a state belongs to the round: rows of those that trained are written in place, once all have; models, buffers and server are not
    changed. A cell with a loss or a model that is not finite gives Diverged: its run is over. A cell without a plan gives None. ranks: each trains
    its share of the jobs, and all get the same outcome. on_job(done, jobs) is called after each job of this rank.
    """
    plans = [
        ordered(plan, cell.data) if plan else None for plan, cell in zip(plans, cells, strict=True)
    ]
    given = [
        Given(round, state.models, state.buffers, plan.shared if plan else {})
        for state, plan in zip(states, plans, strict=True)
    ]
    jobs = [
        job
        for i, plan in enumerate(plans)
        if plan
        for job in jobs_of(i, cells[i], states[i], plan, round)
    ]
    sums = [Sums(len(tree.leaves(state.models)[0])) for state in states]
    done: list[Done] = []
    mine = ranks.share([job.work.steps for job in jobs])
    for one in executor.train(given, [jobs[i] for i in mine], sums):
        done.append(one._replace(job=mine[one.job]))
        on_job(len(done), len(mine))
    done = ranks.exchange(sums, done, cells[0].data.train.y.device)
    done.sort(key=lambda one: one.job)
    of_cell: list[list[tuple[Job, Done]]] = [[] for _ in cells]
    for one in done:
        of_cell[jobs[one.job].cell].append((jobs[one.job], one))
    return [
        _ended(cells[i], states[i], plan, of_cell[i], sums[i], round) if plan else None
        for i, plan in enumerate(plans)
    ]


def _ended(
    cell: Cell, state: State, plan: Plan, done: list[tuple[Job, Done]], sums: Sums, round: int
) -> Trained | Diverged:
    """A cell's state after its jobs."""
    for job, one in done:
        if not math.isfinite(one.loss):
            return at_party(round, job.party, tree.index(state.models, job.model), cell.data.train)
    steps = sum(job.work.steps for job, _ in done)
    counted = [(job.work.steps, one.loss) for job, one in done if job.work.share > 0]
    loss = math.fsum(loss for _, loss in counted) / max(sum(n for n, _ in counted), 1)
    kept = [(job.party, one.own) for job, one in done if job.keep]
    before = _exchanged(cell.algorithm.name, state.parties, kept)
    after = (
        cell.algorithm.aggregate(state, plan, sums.total, cell.algorithm.hyper) if done else state
    )
    if not (finite(after.models) and finite(after.buffers)):
        _exchanged(cell.algorithm.name, state.parties, before[::-1])
        return at_server(round)
    return Trained(after, plan, loss, steps)


def _exchanged(name: str, parties: Tree, rows: list[tuple[int, Tree]]) -> list[tuple[int, Tree]]:
    """Writes what parties keep into their rows; gives what stood there. ValueError where it is not of the shapes that `init` made."""
    have = tree.flatten(parties)
    before = []
    for party, own in rows:
        new = tree.flatten(own)
        wrong = sorted(set(have) ^ set(new)) or [
            k for k, v in new.items() if v.shape != have[k].shape[1:]
        ]
        if wrong:
            both = f"finish returned own {sorted(new)}, init made parties {sorted(have)}"
            raise UsageError(f"{name}: {both}; {wrong[0]!r} is not in both with one shape")
        before.append((party, tree.clone(tree.index(parties, party))))
        for k, v in new.items():
            have[k][party].copy_(v)
    return before
