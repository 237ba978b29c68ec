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
    steps = []
    largest = 0
    for cell in cells:
        data = cell.data
        for party in range(data.n_parties):
            n = data.train.size(party)
            largest = max(largest, n)
            if n:
                steps.append(count_steps(n, cell.settings))
    steps.sort(reverse=True)
    together = sum(steps[:jobs])
    settings = cells[0].settings
    return Limits(
        rows=max(rows, together),
        steps=steps[0],
        width=min(settings.batch_size, largest),
    )


class CountedBatches:
    """The table of a stack's batches in memory that stays, read by the counter of steps.

    counter: [1] int64, the step that is next.
    """

    def __init__(self, batches: StackedBatches, limits: Limits, counter: Tensor):
        self.counter = counter
        self._limits = limits
        self._sources = batches.sources
        start = batches.start
        device = batches.device
        n_jobs = len(batches.n)
        # rows behind the last one are read, and what they say left away, for jobs that have ended
        n_rows = limits.rows + n_jobs
        self._at = start.new_zeros(n_rows, limits.width)
        self._size = start.new_zeros(n_rows)
        self._epoch = start.new_zeros(n_rows)
        self._run_epoch = start.new_zeros(n_rows)
        self._begin = start.new_zeros(limits.steps)
        self._start = torch.zeros_like(start)
        self._steps = torch.zeros_like(start)
        self._jobs = torch.arange(n_jobs, device=device)
        self._columns = torch.arange(limits.width, device=device)

    def fill(self, batches: StackedBatches) -> None:
        """Take the batches of another round."""
        table = batches.table
        n_rows, width = table.at.shape
        n_steps = len(table.begin)
        steps = batches.tensor(batches.steps)
        self._at.zero_()  # the first example is one of any source
        self._at[:n_rows, :width] = table.at
        self._size[:n_rows] = table.size
        self._epoch[:n_rows] = table.epoch
        self._run_epoch[:n_rows] = table.run_epoch
        self._begin[:n_steps] = table.begin
        self._start.copy_(batches.start)
        self._steps.copy_(steps)

    def mark_running(self, n: int) -> Tensor:
        """Return whether each of the first n jobs still runs, [n]."""
        return self._steps[:n] > self.counter

    def load(self, kind: StepKind, running: Tensor | None) -> Batch:
        """Return the batches of the first jobs. running: which run; None for all.

        Those that have ended get examples of their own, of which nothing comes.
        """
        n = kind.n
        width = kind.width
        begin = self._begin[self.counter]
        rows = begin + self._jobs[:n]
        at = self._at[rows, :width]
        if running is not None:
            start = self._start[:n]
            at = torch.where(running.unsqueeze(1), at, start.unsqueeze(1))
        mask = None
        if kind.is_masked:
            sizes = self._size[rows]
            mask = self._columns[:width] < sizes.unsqueeze(1)
        run_epoch: int | Tensor = 1
        if self._sources.has_draws:
            run_epoch = self._run_epoch[rows]
        x, y = self._sources.load(at, select_first(n), run_epoch)
        return Batch(
            x=x,
            y=y,
            mask=mask,
            epoch=self._epoch[rows] if kind.epoch is None else kind.epoch,
            step=self.counter.squeeze(0),
        )
