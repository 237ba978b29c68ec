"""All jobs of a round at once: for a GPU. On a CPU it gives the same, and is slower than one job after another."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from niidpart.errors import UsageError

from ... import tree
from .. import evaluation
from ..batches import count_steps
from ..jobs import Cell, Done, Given, Job
from ..sums import Sums
from .convolution import BEST
from .grouping import group_cells
from .memory import count_fitting_jobs, estimate_job_bytes, largest_party_size
from .probing import probe
from .stack import Mixing, Stack
from .stackable import ELSE, stacking_error, why_not_stackable
from .sums import sum_uploads
from .task import StackedTask, make_stacked_task


class _Plan(NamedTuple):
    """How the jobs of a group run. chunk: jobs at once, at most."""

    how: Mixing
    chunk: float


class Stacked:
    """Trains jobs side by side, parameters [J, ...], the algorithm's functions under `torch.func.vmap`.

    Cells that differ only in numbers share a stack (`grouping.group_cells`); others follow each other. Jobs go in chunks that fit the memory:
    settings.memory, else half of what the device has. How many are in a chunk changes the result by rounding, so it depends on the cells alone (their
    largest party, the trees of their algorithm), not on the round that comes first or on what is free: a run that is taken up again goes on bit for
    bit. What remains: on a device of other memory give the --memory of the first one; other ranks, or other cells beside it, are other chunks.
    """

    score = staticmethod(evaluation.score_model)

    def __init__(
        self, cells: Sequence[Cell], *, convolutions: str | None = None, chunk: int | None = None
    ):
        """convolutions: "grouped" or "product"; None for what is best on the device. chunk: jobs at once; None for what fits.

        ValueError where a model cannot be stacked.
        """
        self.cells, self.asked = cells, chunk
        self.convolutions = convolutions or BEST[cells[0].data.train.y.device.type]
        self.groups = group_cells(cells)
        self.tasks: list[StackedTask] = []
        for group in self.groups:
            cell = cells[group[0]]
            if reason := why_not_stackable(cell, self.convolutions):
                raise UsageError(f"the model cannot be stacked: {reason}; {ELSE}")
            self.tasks.append(make_stacked_task(cell.task, self.convolutions))
        self.plans: dict[int, _Plan] = {}

    def train(
        self, given: Sequence[Given], jobs: Sequence[Job], sums: Sequence[Sums]
    ) -> Iterator[Done]:
        """ValueError where the algorithm cannot be stacked, or not even one job fits into memory."""
        for g, group in enumerate(self.groups):
            places = sorted(
                (i for i, job in enumerate(jobs) if job.cell in group),
                key=lambda i: (-jobs[i].work.steps, i),
            )
            if not places:
                continue
            if g not in self.plans:
                self.plans[g] = self._planned(g, given, [jobs[i] for i in places])
            n = math.ceil(
                len(places) / self.plans[g].chunk
            )  # chunks of one size: none is left with a few
            size = -(-len(places) // n)
            for at in range(0, len(places), size):
                yield from self._chunk(g, given, jobs, places[at : at + size], sums)

    def _chunk(
        self,
        g: int,
        given: Sequence[Given],
        jobs: Sequence[Job],
        places: list[int],
        sums: Sequence[Sums],
    ) -> Iterator[Done]:
        some = [jobs[i] for i in places]
        try:
            losses, upload, own = Stack(
                self.cells, given, some, self.tasks[g], self.plans[g].how
            ).train()
        except RuntimeError as error:
            if "vmap" not in str(error):
                raise
            raise stacking_error(
                self.cells[some[0].cell].algorithm.name, "later steps", error
            ) from error
        for cell in {job.cell for job in some}:
            sums[cell].merge(sum_uploads(upload, some, losses, sums[cell].n_models, cell))
        del upload
        for j, (i, loss) in enumerate(zip(places, losses, strict=True)):
            yield Done(i, loss, tree.index(own, j) if jobs[i].keep and math.isfinite(loss) else {})

    def _planned(self, g: int, given: Sequence[Given], jobs: list[Job]) -> _Plan:
        """Found out by one small step of the cell's largest party, whether it is among the jobs or not."""
        first = min(jobs, key=lambda job: (job.cell, job.party, job.model))
        cell = self.cells[first.cell]
        party = max(range(cell.data.n_parties), key=cell.data.train.size)
        n = cell.data.train.size(party)
        work = first.work._replace(n=n, steps=count_steps(n, cell.settings))
        how, stack, upload, own = probe(
            self.cells, given, first._replace(party=party, work=work), self.tasks[g]
        )
        if self.asked is not None:
            return _Plan(how, self.asked)
        needed = estimate_job_bytes(
            cell,
            largest_party_size([self.cells[c] for c in self.groups[g]]),
            self.convolutions,
            stack,
            upload,
            own,
        )
        return _Plan(
            how,
            count_fitting_jobs(
                needed, cell.settings.memory, stack.device, cell.settings.batch_size
            ),
        )

    def close(self) -> None:
        """There is nothing to end."""
