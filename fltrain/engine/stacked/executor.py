"""All jobs of a round at once: for a GPU. On a CPU it gives the same, but is slower than a loop."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from niidpart.errors import UsageError

from ... import tree
from ...counting import ceil_div, count_steps
from ...tasks.model_task import ModelTask
from ..base import TorchExecutor
from ..execution import Execution
from ..exhaustion import explain_exhaustion
from ..jobs import Broadcast, Cell, Done, Job
from ..scoring import Candidate
from ..sums import Sums
from .convolution import BEST
from .grouping import group_cells
from .memory import count_fitting_jobs, estimate_job_bytes, largest_party_size
from .mixing import Mixing
from .probing import probe
from .scoring import can_score_together, score_together
from .stack import Stack, StackOutcome
from .stackable import ELSE, stacking_error, why_not_stackable
from .sums import sum_uploads
from .task import StackedTask, make_stacked_task

_DEFAULT = Execution(engine="stacked")


class ChunkPlan(NamedTuple):
    """How the jobs of a group run. chunk: jobs at once, at most."""

    mixing: Mixing
    chunk: float


class Stacked(TorchExecutor):
    """Trains jobs side by side: parameters [J, ...], an algorithm's functions under vmap.

    Cells that differ only in numbers share a stack (`grouping.group_cells`); others follow each
    other. Jobs go in chunks that fit the memory: that of the execution, else half of the
    device's.

    How many are in a chunk changes the result by rounding, so it depends on the cells alone (their
    largest party, the trees of their algorithm), not on the round that comes first or on what is
    free: a run that is taken up again goes on bit for bit. What remains: on a device of other
    memory give the --memory of the first one; other ranks, or other cells in the sweep, are other
    chunks.
    """

    # How often what jobs take is there.
    memory_share = 1.0

    def __init__(
        self,
        cells: Sequence[Cell],
        execution: Execution = _DEFAULT,
        *,
        convolutions: str | None = None,
        chunk: int | None = None,
    ):
        """Check that all models can be stacked, or raise a UsageError.

        convolutions: "grouped" or "product"; None for what is best on the device. chunk: jobs at
        once; None for what fits.
        """
        self.cells, self.execution = cells, execution
        self.asked_chunk = chunk
        self.convolutions = convolutions or BEST[execution.device]
        self.groups = group_cells(cells)
        self.tasks: list[StackedTask] = []
        for group in self.groups:
            cell = cells[group[0]]
            with explain_exhaustion(cells, execution):
                reason = why_not_stackable(cell, self.convolutions)
            if reason:
                raise UsageError(f"the model cannot be stacked: {reason}; {ELSE}")
            self.tasks.append(make_stacked_task(cell.task, self.convolutions))
        self.plans: dict[int, ChunkPlan] = {}  # by group, made in its first round
        self._scoring_tasks: dict[ModelTask, StackedTask | None] = {}

    def train(
        self, broadcasts: Mapping[int, Broadcast], jobs: Sequence[Job], sums: Mapping[int, Sums]
    ) -> Iterator[Done]:
        """Train the jobs, group by group, chunk by chunk.

        UsageError where the algorithm cannot be stacked, or not even one job fits into memory.
        """
        for g, group in enumerate(self.groups):
            places = [i for i, job in enumerate(jobs) if job.cell in group]
            if not places:
                continue
            self._start_group(g)
            if g not in self.plans:
                its_jobs = [jobs[i] for i in places]
                with explain_exhaustion(self.cells, self.execution):
                    self.plans[g] = self._plan_chunks(g, broadcasts, its_jobs)
            places.sort(key=lambda i: (-jobs[i].work.steps, i))
            n = len(places)
            n_chunks = math.ceil(n / self.plans[g].chunk)
            size = ceil_div(n, n_chunks)  # of equal size: no chunk is left with a few
            for at in range(0, len(places), size):
                some = places[at : at + size]
                yield from self._train_chunk(
                    g=g, broadcasts=broadcasts, jobs=jobs, places=some, sums=sums
                )

    def _train_chunk(
        self,
        g: int,
        broadcasts: Mapping[int, Broadcast],
        jobs: Sequence[Job],
        places: list[int],
        sums: Mapping[int, Sums],
    ) -> Iterator[Done]:
        """Train the jobs at these places as one stack."""
        some = [jobs[i] for i in places]
        try:
            with explain_exhaustion(self.cells, self.execution):
                stack = Stack(
                    cells=self.cells,
                    broadcasts=broadcasts,
                    jobs=some,
                    task=self.tasks[g],
                    mixing=self.plans[g].mixing,
                )
                outcome = self._train_stack(g, stack)
        except RuntimeError as error:
            if "vmap" not in str(error):
                raise
            name = self.cells[some[0].cell].algorithm.name
            raise stacking_error(name, "later steps", error) from error
        del stack  # its weights make room for the sums
        upload, own, moved = outcome.upload, outcome.own, outcome.moved
        losses = outcome.losses.tolist()  # the host waits for the device here alone
        for cell in {job.cell for job in some}:
            n_models = sums[cell].n_models
            sums[cell].merge(
                sum_uploads(upload=upload, jobs=some, losses=losses, n_models=n_models, cell=cell)
            )
        del upload, outcome
        for j, (i, loss) in enumerate(zip(places, losses, strict=True)):
            is_whole = math.isfinite(loss)
            its_own = tree.index(own, j) if is_whole else {}
            its_moved = tree.index(moved, j) if is_whole and jobs[i].is_measured else {}
            yield Done(i, loss, jobs[i].keep_own(its_own), its_moved)

    def score(self, task: ModelTask, candidates: Iterable[Candidate]) -> list[tuple[int, float]]:
        """Return (number right, summed loss) of each candidate, those of one size together."""
        asked = list(candidates)
        if not asked:
            return []
        if task not in self._scoring_tasks:
            self._scoring_tasks[task] = self._find_scoring_task(task, asked[0])
        stacked = self._scoring_tasks[task]
        return super().score(task, asked) if stacked is None else score_together(stacked, asked)

    def _find_scoring_task(self, task: ModelTask, candidate: Candidate) -> StackedTask | None:
        """Return the task for many models at once; None where it cannot do that."""
        stacked = make_stacked_task(task, self.convolutions)
        return stacked if can_score_together(stacked, candidate) else None

    def _start_group(self, g: int) -> None:
        """Do what comes before the jobs of a group in a round: nothing."""

    def _train_stack(self, g: int, stack: Stack) -> StackOutcome:
        """Train the jobs of a stack, of a group."""
        return stack.train()

    def _pick_largest(self, jobs: list[Job]) -> Job:
        """Return the first of some jobs as if its cell's largest party trained."""
        first = min(jobs, key=lambda job: (job.cell, job.party, job.model))
        cell = self.cells[first.cell]
        party = max(range(cell.data.n_parties), key=cell.data.train.size)
        n = cell.data.train.size(party)
        work = first.work._replace(n=n, steps=count_steps(n, cell.settings))
        return first._replace(party=party, work=work)

    def _plan_chunks(
        self, g: int, broadcasts: Mapping[int, Broadcast], jobs: list[Job]
    ) -> ChunkPlan:
        """Find out how a group can run, by one small step.

        Of the cell's largest party, whether it is among the jobs of this round or not.
        """
        job = self._pick_largest(jobs)
        cell = self.cells[job.cell]
        probed = probe(self.cells, broadcasts, job, self.tasks[g])
        if self.asked_chunk is not None:
            return ChunkPlan(probed.mixing, self.asked_chunk)
        needed = estimate_job_bytes(
            cell=cell,
            n=largest_party_size([self.cells[c] for c in self.groups[g]]),
            convolutions=self.convolutions,
            stack=probed.stack,
            upload=probed.upload,
            own=probed.own,
        )
        device = probed.stack.device
        chunk = count_fitting_jobs(
            needed * self.memory_share, self.execution.memory, device, cell.settings.batch_size
        )
        return ChunkPlan(probed.mixing, chunk)
