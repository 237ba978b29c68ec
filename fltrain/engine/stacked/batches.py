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
from .table import BatchTable, JobSchedule


class StackedBatches:
    """A loader of batches for J jobs, which have one batch size, sorted by steps.

    Lists by job, on the host: n, examples; steps. table: which examples each batch has. Tensors
    [J], on the device: start, the job's first example within its source; size, `n` again.
    """

    def __init__(self, cells: Sequence[Cell], jobs: Sequence[Job], round: int):
        data = [cells[job.cell].data.train for job in jobs]
        settings = cells[jobs[0].cell].settings
        self.device = data[0].y.device
        self.batch_size = settings.batch_size
        self.n = [int(job.work.n) for job in jobs]
        self.steps = [int(job.work.steps) for job in jobs]
        pairs = zip(self.steps, self.n, strict=True)
        epochs = [ceil_div(steps, ceil_div(n, self.batch_size)) for steps, n in pairs]
        epochs_per_round = [count_epochs(n, settings) for n in self.n]
        self.selector = RowSelector(self.device)
        self.sources = StackedSources(data, self.selector)
        self.orders = draw_orders(
            cells=cells, jobs=jobs, round=round, epochs=epochs, device=self.device
        )
        pairs_of_jobs = zip(data, jobs, strict=True)
        starts = [one.indptr[job.party] for one, job in pairs_of_jobs]
        self.start = self.tensor(starts)
        self.size = self.tensor(self.n)
        schedule = JobSchedule(
            n=self.n,
            steps=self.steps,
            start=starts,
            # of the whole run, from 1: the one in which the round begins
            run_epoch=[(round - 1) * each + 1 for each in epochs_per_round],
            batch_size=self.batch_size,
            shuffle=settings.shuffle,
        )
        self.table = BatchTable(schedule, self.orders, self.device)

    def tensor(self, values: Sequence[int]) -> Tensor:
        """Return whole numbers on the device."""
        return torch.tensor(values, dtype=torch.int64, device=self.device)

    def load(self, step: int, rows: StackRows, width: int) -> Batch:
        """Return the batches of some jobs: x [R, width, ...], y [R, width].

        mask [R, width]: False where a batch is shorter, None where none is. epoch: [R], or one
        number where it is equal.
        """
        table, here = self.table, self.table[step].span
        at = rows.select(table.at[here, :width])
        mask = None
        if min(self.sizes(step, rows)) < width:
            size = rows.select(table.size[here])
            mask = torch.arange(width, device=self.device) < size.unsqueeze(1)
        epoch = _share(self.epochs(step, rows), rows, table.epoch[here])
        run_epoch: int | Tensor = 1  # where nothing is drawn by it, it is not calculated in vain
        if self.sources.has_draws:
            known = rows.pick(table.run_epochs[here])
            run_epoch = _share(known, rows, table.run_epoch[here])
        x, y = self.sources.load(at, rows, run_epoch)
        return Batch(x=x, y=y, mask=mask, epoch=epoch, step=step)

    def sizes(self, step: int, rows: StackRows) -> list[int]:
        """Return how many examples the batch of each of these jobs has."""
        return rows.pick(self.table.sizes[self.table[step].span])

    def epochs(self, step: int, rows: StackRows) -> list[int]:
        """Return the epoch of each job's local training, from 0."""
        return rows.pick(self.table.epochs[self.table[step].span])

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


def _share(known: list[int], rows: StackRows, values: Tensor) -> int | Tensor:
    """Return the number that some jobs have in common, or theirs of `values` [n], which it is.

    known: their numbers, on the host.
    """
    if min(known) == max(known):
        return known[0]
    return rows.select(values)
