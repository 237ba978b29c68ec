"""All jobs of a round at once: for a GPU. On a CPU it gives the same, and is slower than one job after another."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ... import tree
from .. import evaluate
from ..jobs import Cell, Done, Given, Job
from ..sums import Sums
from .convolution import BEST
from .memory import fitting, per_job
from .stack import How, Stack
from .stackable import ELSE, cannot, groups, obstacle, probe
from .sums import summed
from .task import StackedTask, stacked


class _Plan(NamedTuple):
    """How the jobs of a group run. chunk: jobs at once, at most."""

    how: How
    chunk: float


class Stacked:
    """Trains jobs side by side, parameters [J, ...], the algorithm's functions under `torch.func.vmap`.

    Cells that differ only in numbers share a stack (`stackable.groups`); others follow each other. Jobs go in chunks that fit the memory
    (settings.memory, else most of what is free at the first round); how many are in a chunk changes the result by rounding at most.
    """

    score = staticmethod(evaluate.score)

    def __init__(self, cells: Sequence[Cell], *, convolutions: str | None = None, chunk: int | None = None):
        """convolutions: "grouped" or "product"; None for what is best on the device. chunk: jobs at once; None for what fits.

        ValueError where a model cannot be stacked.
        """
        self.cells, self.asked = cells, chunk
        self.convolutions = convolutions or BEST[cells[0].data.train.y.device.type]
        self.groups = groups(cells)
        self.tasks: list[StackedTask] = []
        for group in self.groups:
            cell = cells[group[0]]
            if reason := obstacle(cell, self.convolutions):
                raise ValueError(f"the model cannot be stacked: {reason}; {ELSE}")
            self.tasks.append(stacked(cell.task, self.convolutions))
        self.plans: dict[int, _Plan] = {}

    def train(self, given: Sequence[Given], jobs: Sequence[Job], sums: Sequence[Sums]) -> Iterator[Done]:
        """ValueError where the algorithm cannot be stacked, or not even one job fits into memory."""
        for g, group in enumerate(self.groups):
            places = sorted((i for i, job in enumerate(jobs) if job.cell in group), key=lambda i: (-jobs[i].work.steps, i))
            if not places:
                continue
            if g not in self.plans:
                self.plans[g] = self._planned(g, given, [jobs[i] for i in places])
            n = math.ceil(len(places) / self.plans[g].chunk)  # chunks of one size: none is left with a few
            size = -(-len(places) // n)
            for at in range(0, len(places), size):
                yield from self._chunk(g, given, jobs, places[at : at + size], sums)

    def _chunk(self, g: int, given: Sequence[Given], jobs: Sequence[Job], places: list[int], sums: Sequence[Sums]) -> Iterator[Done]:
        some = [jobs[i] for i in places]
        try:
            losses, upload, own = Stack(self.cells, given, some, self.tasks[g], self.plans[g].how).train()
        except RuntimeError as error:
            if "vmap" not in str(error):
                raise
            raise cannot(self.cells[some[0].cell].algorithm.name, "later steps", error) from error
        for cell in {job.cell for job in some}:
            sums[cell].merge(summed(upload, some, losses, sums[cell].n_models, cell))
        del upload
        for j, (i, loss) in enumerate(zip(places, losses, strict=True)):
            yield Done(i, loss, tree.index(own, j) if jobs[i].keep and math.isfinite(loss) else {})

    def _planned(self, g: int, given: Sequence[Given], jobs: list[Job]) -> _Plan:
        """Found out by one small step of the job with the most examples."""
        largest = max(jobs, key=lambda job: job.work.n)
        how, stack, upload, own = probe(self.cells, given, largest, self.tasks[g])
        if self.asked is not None:
            return _Plan(how, self.asked)
        cell = self.cells[largest.cell]
        needed = per_job(cell, self.convolutions, stack, upload, own)
        return _Plan(how, fitting(needed, cell.settings.memory, stack.device, cell.settings.batch_size))

    def close(self) -> None:
        """There is nothing to end."""
