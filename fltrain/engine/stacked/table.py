"""What the batches of a stack are, made before the first step: which examples, how many, of which
epoch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..shuffling import JobOrders

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class JobSchedule:
    """The local training of J jobs, as lists.

    n: examples; steps: descending; start: the place of their first example; run_epoch: the epoch of
    the run that they begin with.
    """

    n: Sequence[int]
    steps: Sequence[int]
    start: Sequence[int]
    run_epoch: Sequence[int]
    batch_size: int
    shuffle: bool


class StepRows(NamedTuple):
    """The rows begin..end of a step in the table, and what is least and most among them.

    A row for each job that still runs: these are the first ones.
    """

    begin: int
    end: int
    shortest: int
    widest: int
    first_epoch: int
    last_epoch: int

    @property
    def n(self) -> int:
        """How many jobs still run."""
        return self.end - self.begin

    @property
    def span(self) -> slice:
        """The rows."""
        return slice(self.begin, self.end)

    @property
    def are_equal(self) -> bool:
        """Whether all batches are of one size."""
        return self.shortest == self.widest

    @property
    def are_in_one_epoch(self) -> bool:
        """Whether all jobs are."""
        return self.first_epoch == self.last_epoch


class BatchTable:
    """A row for each job that still runs at a step; those of a step stand together.

    T rows, W examples of the widest batch. On the host, [T]: sizes of batches; epochs of the local
    training, from 0; run_epochs, of the run, from 1. On the device: at [T, W] int64, examples
    within their source; size, epoch, run_epoch [T]; begin [S], the first row of each step. Padding
    repeats the first example of the epoch.
    """

    def __init__(self, schedule: JobSchedule, orders: JobOrders, device: torch.device):
        steps = np.array(schedule.steps, np.int64)
        longest = int(steps[0])
        # steps descend, so that those above a number are the first ones
        running = np.searchsorted(-steps, -np.arange(longest), side="left")
        begin = np.concatenate([[0], np.cumsum(running)])
        step = np.repeat(np.arange(longest), running)
        job = np.arange(len(step)) - begin[step]
        self.width = min(schedule.batch_size, max(schedule.n))
        n = np.array(schedule.n, np.int64)[job]
        per_epoch = -(-n // schedule.batch_size)
        first = step % per_epoch * schedule.batch_size  # of the batch, within its epoch
        self.epochs: _Ints = step // per_epoch
        self.sizes: _Ints = np.minimum(schedule.batch_size, n - first)
        order = np.array(orders.begin, np.int64)[job]
        if schedule.shuffle:  # else there is one order for all epochs
            order = order + self.epochs * n
        start = np.array(schedule.start, np.int64)[job]
        self.run_epochs: _Ints = np.array(schedule.run_epoch, np.int64)[job] + self.epochs
        self.size = _move(self.sizes, device)
        self.epoch = _move(self.epochs, device)
        self.run_epoch = _move(self.run_epochs, device)
        self.begin = _move(begin[:-1], device)
        self._steps = _summarise_steps(begin, sizes=self.sizes, epochs=self.epochs)
        self.at = _find_examples(first, order, start, orders=orders, size=self.size, table=self)

    def __getitem__(self, step: int) -> StepRows:
        return self._steps[step]


def _summarise_steps(begin: _Ints, sizes: _Ints, epochs: _Ints) -> list[StepRows]:
    """Return what is known of each step. begin: [S + 1]; sizes, epochs: [T]."""
    at = begin[:-1]
    columns = (
        begin[:-1],
        begin[1:],
        np.minimum.reduceat(sizes, at),
        np.maximum.reduceat(sizes, at),
        np.minimum.reduceat(epochs, at),
        np.maximum.reduceat(epochs, at),
    )
    lists = [column.tolist() for column in columns]
    return [StepRows(*row) for row in zip(*lists, strict=True)]


def _find_examples(
    first: _Ints,
    order: _Ints,
    start: _Ints,
    *,
    orders: JobOrders,
    size: Tensor,
    table: BatchTable,
) -> Tensor:
    """Return the examples [T, W] of all batches.

    first: of the batch within its epoch; order: where the epoch's order begins; start: where the
    job's examples do, [T] each.
    """
    device = size.device
    column = torch.arange(table.width, device=device)
    place = _move(first, device).unsqueeze(1) + column
    place.masked_fill_(column >= size.unsqueeze(1), 0)
    place += _move(order, device).unsqueeze(1)
    at = orders.flat[place]
    at += _move(start, device).unsqueeze(1)
    return at


def _move(values: _Ints, device: torch.device) -> Tensor:
    return torch.from_numpy(values).to(device)
