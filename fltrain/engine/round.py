"""One round: the jobs of all cells to the executor, what they give back into each cell's state."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch

from niidpart.errors import UsageError

from .. import tree
from ..interface import Plan, State
from ..tree import Tree
from .diverged import Diverged, blame_party, blame_server, is_finite
from .drift import Drift, MovedJob, measure_drift
from .jobs import Broadcast, Cell, Done, Executor, Job, make_jobs, sort_plan
from .ranks import ALONE, Ranks
from .sums import Sums

OnJob = Callable[[int, int], None]
BeforeWriting = Callable[[int, Sequence[int]], None]
_CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class CellRound:
    """A cell that a round is due for: its state before it, and the plan that its jobs follow.

    is_measured: whether the drift of the parties is.
    """

    cell: Cell
    state: State
    plan: Plan
    is_measured: bool = False


@dataclass(frozen=True, eq=False)
class Trained:
    """A cell's outcome of a round.

    plan: the jobs that ran, in their order; loss: mean training loss over the steps of the jobs
    that weigh something; steps: of the optimiser, over all jobs; uploaded: how many numbers each
    job uploads, by their path; drift: by layer and party, {} where it is not measured.
    """

    state: State
    plan: Plan
    loss: float
    steps: int
    uploaded: dict[str, int]
    drift: dict[str, dict[int, Drift]]

    def list_written(self) -> list[int]:
        """Return the parties whose rows were written, a party once for each job that did so."""
        party, keep = self.plan.party, self.plan.keep
        kept = party if keep is None else party[keep]
        written: list[int] = kept.tolist()
        return written


class _JobResult(NamedTuple):
    job: Job
    done: Done


def train_round(
    due: Mapping[int, CellRound],
    round: int,
    executor: Executor,
    on_job: OnJob = lambda done, jobs: None,
    ranks: Ranks = ALONE,
    device: torch.device = _CPU,
    before_writing: BeforeWriting = lambda number, parties: None,
) -> dict[int, Trained | Diverged]:
    """Train the jobs of all cells that are due, and aggregate; return each cell's outcome.

    due: by the number of the cell among those that the executor was made for; so is what is
    returned. Jobs of parties without examples are left out. A cell with a loss or a model that is
    not finite gives Diverged: its run has ended.

    Mutates `state.parties`: after all jobs finish, the rows of trained parties are overwritten.
    Models, buffers and server are not changed.

    on_job(done, jobs) is called after each job of this rank. ranks: each trains its share of the
    jobs, and all get the same outcome. device: on which they exchange it.

    before_writing(number, parties) is called before rows of these parties are overwritten.
    """
    jobs: list[Job] = []
    sums: dict[int, Sums] = {}
    sorted_due: dict[int, CellRound] = {}
    for number, asked in due.items():
        one = replace(asked, plan=sort_plan(asked.plan, asked.cell.data))
        sorted_due[number] = one
        sums[number] = Sums(one.state.n_models)
        jobs += make_jobs(
            index=number,
            cell=one.cell,
            state=one.state,
            plan=one.plan,
            round=round,
            is_measured=one.is_measured,
        )
    done = _train_share(
        due=sorted_due,
        round=round,
        jobs=jobs,
        sums=sums,
        executor=executor,
        on_job=on_job,
        ranks=ranks,
    )
    done = ranks.exchange(list(sums.values()), done, device)
    results: dict[int, list[_JobResult]] = {number: [] for number in due}
    # In the order of the plan, whoever was done first: sums of floats below depend on it.
    for job_done in sorted(done, key=lambda one: one.job):
        job = jobs[job_done.job]
        results[job.cell].append(_JobResult(job, job_done))
    outcomes = {}
    for number, one in sorted_due.items():
        before_writing(number, [result.job.party for result in results[number]])
        outcomes[number] = _end_round(one, results[number], sums[number], round)
    return outcomes


def _train_share(
    due: Mapping[int, CellRound],
    round: int,
    jobs: Sequence[Job],
    sums: Mapping[int, Sums],
    executor: Executor,
    on_job: OnJob,
    ranks: Ranks,
) -> list[Done]:
    """Train this rank's share of the jobs. `Done.job` of the result is the place in `jobs`."""
    broadcasts = {}
    for number, cell_round in due.items():
        state, plan = cell_round.state, cell_round.plan
        broadcasts[number] = Broadcast(round, state.models, state.buffers, plan.shared)
    places = ranks.share([float(job.work.steps) for job in jobs])
    done: list[Done] = []
    for one in executor.train(broadcasts, [jobs[place] for place in places], sums):
        # The executor counts within the share; the ranks need places that all of them agree on.
        done.append(one._replace(job=places[one.job]))
        on_job(len(done), len(places))
    return done


def _end_round(
    before: CellRound, results: Sequence[_JobResult], sums: Sums, round: int
) -> Trained | Diverged:
    """Return a cell's state after its jobs."""
    cell, state, plan = before.cell, before.state, before.plan
    for job, done in results:
        if not math.isfinite(done.loss):
            start = tree.index(state.models, job.model)
            return blame_party(round, job.party, start, cell.data, cell.task.loss)
    kept = [(job.party, done.own) for job, done in results if job.keep]
    _require_shapes(cell.algorithm.name, state.parties, [own for _, own in kept])
    old_rows = _swap_rows(state.parties, kept)
    after = state
    if results:
        after = cell.algorithm.aggregate(state, plan, sums.total, cell.algorithm.hyper)
    if not (is_finite(after.models) and is_finite(after.buffers)):
        # In reverse: a party with several jobs was written several times, its oldest row first.
        _swap_rows(state.parties, old_rows[::-1])
        return blame_server(round)
    steps = sum(int(job.work.steps) for job, _ in results)
    uploaded = {path: of_models[0].numel() for path, of_models in sums.high.items()}
    return Trained(
        state=after,
        plan=plan,
        loss=_mean_loss(results),
        steps=steps,
        uploaded=uploaded,
        drift=_measure_drift(cell, results),
    )


def _measure_drift(cell: Cell, results: Sequence[_JobResult]) -> dict[str, dict[int, Drift]]:
    """Return how far the parties moved that are measured; {} where none is."""
    moved = []
    for job, done in results:
        if done.moved:
            share = float(job.work.share)
            moved.append(MovedJob(job.party, job.model, share, done.moved))
    return measure_drift(moved, by_layer=cell.settings.drift == "layers") if moved else {}


def _mean_loss(results: Sequence[_JobResult]) -> float:
    """Return the mean loss over the steps of the jobs that weigh something; 0 without any."""
    weighty = [(job, done) for job, done in results if float(job.work.share) > 0]
    steps = sum(int(job.work.steps) for job, _ in weighty)
    return math.fsum(done.loss for _, done in weighty) / max(steps, 1)


def _require_shapes(name: str, parties: Tree, owns: Sequence[Tree]) -> None:
    """Raise UsageError where what a party keeps has not the shapes that `init` made.

    The algorithm may be a user's own.
    """
    have = tree.flatten(parties)
    for own in owns:
        new = tree.flatten(own)
        wrong = sorted(set(have) ^ set(new))
        for path, leaf in new.items():
            if path in have and leaf.shape != have[path].shape[1:]:
                wrong.append(path)
        if wrong:
            both = f"finish returned own {sorted(new)}, init made parties {sorted(have)}"
            raise UsageError(f"{name}: {both}; {wrong[0]!r} is not in both with one shape")


def _swap_rows(parties: Tree, rows: Sequence[tuple[int, Tree]]) -> list[tuple[int, Tree]]:
    """Write rows of parties in place, and return copies of what stood there."""
    leaves = tree.flatten(parties)
    old_rows = []
    for party, row in rows:
        old_row = tree.clone(tree.index(parties, party))
        old_rows.append((party, old_row))
        for path, value in tree.flatten(row).items():
            leaves[path][party].copy_(value)
    return old_rows
