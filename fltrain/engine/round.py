"""One round: the jobs of all cells to the executor, what they give back into each cell's state."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from niidpart.errors import UsageError

from .. import tree
from ..interface import Plan, State
from ..tree import Tree
from .diverged import Diverged, blame_party, blame_server, is_finite
from .jobs import Broadcast, Cell, Done, Executor, Job, make_jobs, sort_plan
from .ranks import ALONE, Ranks
from .sums import Sums

OnJob = Callable[[int, int], None]
_CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class Trained:
    """A cell's outcome of a round.

    plan: the jobs that ran, in their order; loss: mean training loss over the steps of the jobs
    that weigh something; steps: of the optimiser, over all jobs.
    """

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
    on_job: OnJob = lambda done, jobs: None,
    ranks: Ranks = ALONE,
    device: torch.device = _CPU,
) -> list[Trained | Diverged | None]:
    """Train every job of every cell's plan, and aggregate; return the outcome of each cell.

    Jobs of parties without examples are left out. A cell without a plan gives None. A cell with a
    loss or a model that is not finite gives Diverged: its run is over.

    `parties` of a state belongs to the round: rows of those that trained are written in place, once
    all have. Models, buffers and server are not changed.

    on_job(done, jobs) is called after each job of this rank. ranks: each trains its share of the
    jobs, and all get the same outcome. device: on which they exchange it.
    """
    plans = [
        sort_plan(plan, cell.data) if plan else None
        for plan, cell in zip(plans, cells, strict=True)
    ]
    broadcasts = [
        Broadcast(round, state.models, state.buffers, plan.shared if plan else {})
        for state, plan in zip(states, plans, strict=True)
    ]
    jobs: list[Job] = []
    for i, plan in enumerate(plans):
        if plan:
            jobs += make_jobs(i, cells[i], states[i], plan, round)
    sums = [Sums(len(tree.leaves(state.models)[0])) for state in states]
    mine = ranks.share([float(job.work.steps) for job in jobs])
    done: list[Done] = []
    for one in executor.train(broadcasts, [jobs[i] for i in mine], sums):
        done.append(one._replace(job=mine[one.job]))
        on_job(len(done), len(mine))
    done = ranks.exchange(sums, done, device)
    done.sort(key=lambda one: one.job)
    of_cell: list[list[tuple[Job, Done]]] = [[] for _ in cells]
    for one in done:
        job = jobs[one.job]
        of_cell[job.cell].append((job, one))
    return [
        _end_round(cells[i], states[i], plan, of_cell[i], sums[i], round) if plan else None
        for i, plan in enumerate(plans)
    ]


def _end_round(
    cell: Cell, state: State, plan: Plan, done: list[tuple[Job, Done]], sums: Sums, round: int
) -> Trained | Diverged:
    """Return a cell's state after its jobs."""
    for job, one in done:
        if not math.isfinite(one.loss):
            start = tree.index(state.models, job.model)
            return blame_party(round, job.party, start, cell.data.train)
    steps = sum(int(job.work.steps) for job, _ in done)
    weighty = [(int(job.work.steps), one.loss) for job, one in done if float(job.work.share) > 0]
    loss = math.fsum(loss for _, loss in weighty) / max(sum(n for n, _ in weighty), 1)
    kept = [(job.party, one.own) for job, one in done if job.keep]
    before = _exchange_rows(cell.algorithm.name, state.parties, kept)
    after = (
        cell.algorithm.aggregate(state, plan, sums.total, cell.algorithm.hyper) if done else state
    )
    if not (is_finite(after.models) and is_finite(after.buffers)):
        # Parties are put back as they were: in reverse, since one may have had several jobs.
        _exchange_rows(cell.algorithm.name, state.parties, before[::-1])
        return blame_server(round)
    return Trained(after, plan, loss, steps)


def _exchange_rows(
    name: str, parties: Tree, rows: list[tuple[int, Tree]]
) -> list[tuple[int, Tree]]:
    """Write what parties keep into their rows, and return what stood there.

    UsageError where it is not of the shapes that `init` made: the algorithm is a user's own.
    """
    have = tree.flatten(parties)
    before = []
    for party, own in rows:
        new = tree.flatten(own)
        wrong = sorted(set(have) ^ set(new))
        wrong += [k for k, v in new.items() if k in have and v.shape != have[k].shape[1:]]
        if wrong:
            both = f"finish returned own {sorted(new)}, init made parties {sorted(have)}"
            raise UsageError(f"{name}: {both}; {wrong[0]!r} is not in both with one shape")
        before.append((party, tree.clone(tree.index(parties, party))))
        for path, value in new.items():
            have[path][party].copy_(value)
    return before
