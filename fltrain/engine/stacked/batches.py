"""The batch loader of a stack: `engine/batches.py` for many jobs at once."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ...counting import ceil_div, count_epochs
from ...interface import Batch
from ..jobs import Cell, Job
from ..shuffling import draw_orders
from .rows import RowSelector, StackRows
from .sources import StackedSources


class StackedBatches:
    """A loader of batches for J jobs, which have one batch size.

    Lists by job, on the host: n, examples; steps; per_epoch, batches of an epoch; run_epoch, the
    epoch of the whole run in which the round begins, from 1. Tensors [J], on the device: start, the
    job's first example within its source; size, `n` again.
    """

    def __init__(self, cells: Sequence[Cell], jobs: Sequence[Job], round: int):
        data = [cells[job.cell].data.train for job in jobs]
        settings = cells[jobs[0].cell].settings
        self.device = data[0].y.device
        self.batch_size = settings.batch_size
        self.shuffle = settings.shuffle
        self.n = [int(job.work.n) for job in jobs]
        self.steps = [int(job.work.steps) for job in jobs]
        self.per_epoch = [ceil_div(n, self.batch_size) for n in self.n]
        pairs = zip(self.steps, self.per_epoch, strict=True)
        epochs = [ceil_div(steps, per_epoch) for steps, per_epoch in pairs]
        epochs_per_round = [count_epochs(n, settings) for n in self.n]
        self.run_epoch = [(round - 1) * each + 1 for each in epochs_per_round]
        self.selector = RowSelector(self.device)
        self.sources = StackedSources(data, self.selector)
        self.orders = draw_orders(
            cells=cells, jobs=jobs, round=round, epochs=epochs, device=self.device
        )
        pairs_of_jobs = zip(data, jobs, strict=True)
        starts = [one.indptr[job.party] for one, job in pairs_of_jobs]
        self.start = self.tensor(starts)
        self.size = self.tensor(self.n)
        self._per_epoch = self.tensor(self.per_epoch)
        self._run_epoch = self.tensor(self.run_epoch)

    def tensor(self, values: Sequence[int]) -> Tensor:
        """Return whole numbers on the device."""
        return torch.tensor(values, dtype=torch.int64, device=self.device)

    def sizes(self, step: int, places: Sequence[int]) -> list[int]:
        """Return how many examples the batch of each of these jobs has."""
        sizes = []
        for j in places:
            batch = step % self.per_epoch[j]  # its number within the epoch
            left = self.n[j] - batch * self.batch_size
            sizes.append(min(self.batch_size, left))
        return sizes

    def epochs(self, step: int, places: Sequence[int]) -> list[int]:
        """Return the epoch of each job's local training, from 0."""
        return [step // self.per_epoch[j] for j in places]

    def load(self, step: int, rows: StackRows, width: int) -> Batch:
        """Return the batches of some jobs: x [R, width, ...], y [R, width].

        mask [R, width]: False where a batch is shorter, None where none is. epoch: [R], or one
        number where it is equal.
        """
        epoch = step // rows.select(self._per_epoch)  # [R]
        place, mask = self._locate(step, rows, width)
        begin = rows.select(self.orders.begin)
        if self.shuffle:  # else there is one order for all epochs
            begin = begin + epoch * rows.select(self.size)
        order = self.orders.flat[begin.unsqueeze(1) + place]
        at = rows.select(self.start).unsqueeze(1) + order
        run_epoch = self._find_run_epoch(step, rows, epoch)
        x, y = self.sources.load(at, rows, run_epoch)
        known = set(self.epochs(step, rows.places))
        common = known.pop() if len(known) == 1 else epoch
        return Batch(x=x, y=y, mask=mask, epoch=common, step=step)

    def _locate(self, step: int, rows: StackRows, width: int) -> tuple[Tensor, Tensor | None]:
        """Return the places [R, width] of the batches within their epoch, and the mask."""
        number = step % rows.select(self._per_epoch)
        first = (number * self.batch_size).unsqueeze(1)
        place = first + torch.arange(width, device=self.device)
        if min(self.sizes(step, rows.places)) >= width:
            return place, None
        mask = place < rows.select(self.size).unsqueeze(1)
        return torch.where(mask, place, 0), mask  # padding repeats the first example

    def _find_run_epoch(self, step: int, rows: StackRows, epoch: Tensor) -> int | Tensor:
        """Return the epoch of the whole run: one for all jobs, or [R].

        1 where nothing is drawn by it, so that it is not calculated in vain.
        """
        if not self.sources.has_draws:
            return 1
        pairs = zip(rows.places, self.epochs(step, rows.places), strict=True)
        known = {self.run_epoch[j] + each for j, each in pairs}
        if len(known) == 1:
            return known.pop()
        return rows.select(self._run_epoch) + epoch

    def iterate_in_order(self, start: Tensor, size: Tensor, source: Tensor) -> Iterator[Batch]:
        """Yield every example of one job once, for a full gradient; padded to the longest job.

        Within `torch.func.vmap`, so that the three are numbers of a job that is not known here.
        """
        longest = max(self.n)
        for begin in range(0, longest, self.batch_size):
            width = min(self.batch_size, longest - begin)
            place = begin + torch.arange(width, device=self.device)
            mask = place < size
            at = start + torch.where(mask, place, 0)
            x, y = self.sources.load_one(at, source)
            yield Batch(x=x, y=y, mask=mask, epoch=0, step=0)
