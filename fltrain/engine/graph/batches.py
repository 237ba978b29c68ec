"""The batches of a stack by a counter of steps that lies on the device."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ...counting import count_steps
from ...interface import Batch
from ..jobs import Cell
from ..stacked.batches import StackedBatches
from ..stacked.rows import select_first
from .kinds import StepKind


class Limits(NamedTuple):
    """What J jobs of some cells need at most, so that memory made once does for all rounds.

    rows: of the table of batches; steps; width: examples of a batch.
    """

    rows: int
    steps: int
    width: int


def find_limits(cells: Sequence[Cell], jobs: int, rows: int) -> Limits:
    """Return the limits of any jobs of these cells. rows: those that there are in a round.

    Counted as if the longest jobs came together, each party with one.
    """
    steps, sizes = [], []
    for cell in cells:
        train = cell.data.train
        its_sizes = [train.size(party) for party in range(cell.data.n_parties)]
        sizes += its_sizes
        steps += [count_steps(n, cell.settings) for n in its_sizes if n]
    longest = sorted(steps, reverse=True)[:jobs]
    width = min(cells[0].settings.batch_size, max(sizes))
    return Limits(rows=max(rows, sum(longest)), steps=max(steps), width=width)


class CountedBatches:
    """The table of a stack's batches in memory that stays, read by the counter of steps.

    counter: [1] int64, the step that is next.
    """

    def __init__(self, batches: StackedBatches, limits: Limits, counter: Tensor):
        self.counter = counter
        self._limits = limits
        self._sources = batches.sources
        n_jobs = len(batches.n)
        # rows behind the last one are read, and what they say left away, for jobs that have ended
        n_rows = limits.rows + n_jobs
        self._at = batches.start.new_zeros(n_rows, limits.width)
        self._size = batches.start.new_zeros(n_rows)
        self._epoch = batches.start.new_zeros(n_rows)
        self._run_epoch = batches.start.new_zeros(n_rows)
        self._begin = batches.start.new_zeros(limits.steps)
        self._start = torch.zeros_like(batches.start)
        self._steps = torch.zeros_like(batches.start)
        self._jobs = torch.arange(n_jobs, device=batches.device)
        self._columns = torch.arange(limits.width, device=batches.device)

    def fill(self, batches: StackedBatches) -> None:
        """Take the batches of another round."""
        table = batches.table
        n_rows, width = table.at.shape
        self._at.zero_()  # the first example is one of any source
        self._at[:n_rows, :width] = table.at
        self._size[:n_rows] = table.size
        self._epoch[:n_rows] = table.epoch
        self._run_epoch[:n_rows] = table.run_epoch
        self._begin[: len(table.begin)] = table.begin
        self._start.copy_(batches.start)
        self._steps.copy_(batches.tensor(batches.steps))

    def mark_running(self, n: int) -> Tensor:
        """Return whether each of the first n jobs still runs, [n]."""
        return self._steps[:n] > self.counter

    def load(self, kind: StepKind, running: Tensor | None) -> Batch:
        """Return the batches of the first jobs. running: which run; None for all.

        Those that have ended get examples of their own, of which nothing comes.
        """
        rows = self._begin[self.counter] + self._jobs[: kind.n]
        at = self._at[rows, : kind.width]
        if running is not None:
            start = self._start[: kind.n].unsqueeze(1)
            at = torch.where(running.unsqueeze(1), at, start)
        mask = None
        if kind.is_masked:
            mask = self._columns[: kind.width] < self._size[rows].unsqueeze(1)
        run_epoch: int | Tensor = 1
        if self._sources.has_draws:
            run_epoch = self._run_epoch[rows]
        x, y = self._sources.load(at, select_first(kind.n), run_epoch)
        epoch = self._epoch[rows] if kind.epoch is None else kind.epoch
        return Batch(x=x, y=y, mask=mask, epoch=epoch, step=self.counter.squeeze(0))
