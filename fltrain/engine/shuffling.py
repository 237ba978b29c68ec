"""The orders in which some jobs see their examples, drawn for all of them at once."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..draws import key, orders, to_int64
from .batches import fixed_order_key
from .jobs import Cell, Job


class _ShuffleStream(NamedTuple):
    """Orders of one key: of n examples, another one in each epoch."""

    key: int
    n: int


class JobOrders:
    """The orders of J jobs, each of them the numbers 0..n-1 for each epoch.

    flat: [total + 1] int64, all orders one after another; its last entry takes what is padding
    while they are drawn. begin: on the host, where the first epoch of each job begins in `flat`;
    the following ones stand behind it.

    Jobs of one key and size share their orders (a party that trains several models).
    """

    def __init__(
        self, streams: Sequence[_ShuffleStream], epochs: Sequence[int], device: torch.device
    ):
        self.device = device
        wanted: dict[_ShuffleStream, int] = {}  # -> epochs
        for stream, n_epochs in zip(streams, epochs, strict=True):
            wanted[stream] = max(wanted.get(stream, 0), n_epochs)
        begins: dict[_ShuffleStream, int] = {}
        total = 0
        for stream, n_epochs in wanted.items():
            begins[stream] = total
            total += stream.n * n_epochs
        self.flat = torch.empty(total + 1, dtype=torch.int64, device=device)
        self._draw(wanted, begins)
        self.begin = [begins[stream] for stream in streams]

    def _draw(self, wanted: dict[_ShuffleStream, int], begins: dict[_ShuffleStream, int]) -> None:
        """Draw all orders, by one sort for each epoch of all streams that are about as long.

        Padding to the longest of all would take too much memory.
        """
        by_length: dict[int, list[_ShuffleStream]] = {}
        for stream in wanted:
            by_length.setdefault(stream.n.bit_length(), []).append(stream)
        for _, alike in sorted(by_length.items()):
            most_epochs = max(wanted[stream] for stream in alike)
            for epoch in range(most_epochs):
                active = [stream for stream in alike if wanted[stream] > epoch]
                starts = [begins[stream] + epoch * stream.n for stream in active]
                self._draw_epoch(active, epoch, starts)

    def _draw_epoch(self, streams: list[_ShuffleStream], epoch: int, starts: list[int]) -> None:
        """Draw the orders of one epoch, and write each to its start in `flat`."""
        sizes = self._tensor([stream.n for stream in streams])
        keys = self._tensor([to_int64(stream.key) for stream in streams])
        width = max(stream.n for stream in streams)
        drawn = orders(keys, epoch, sizes, width)  # [streams, width], padded
        column = torch.arange(width, device=self.device)
        at = self._tensor(starts).unsqueeze(1) + column
        is_padding = column >= sizes.unsqueeze(1)
        trash = len(self.flat) - 1
        at = torch.where(is_padding, trash, at)
        self.flat[at.flatten()] = drawn.flatten()

    def _tensor(self, values: Sequence[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=self.device)


def draw_orders(
    cells: Sequence[Cell] | Mapping[int, Cell],
    jobs: Sequence[Job],
    round: int,
    epochs: Sequence[int],
    device: torch.device,
) -> JobOrders:
    """Return the orders of some jobs in a round, of so many epochs each.

    cells: by the numbers that the jobs have, of one `shuffle`.
    Without `shuffle` a job has one order for good.
    """
    settings = [cells[job.cell].settings for job in jobs]
    streams = []
    for job, one in zip(jobs, settings, strict=True):
        if one.shuffle:
            order_key = key(one.seed, "job", round, job.party)
        else:
            order_key = fixed_order_key(one.seed)
        streams.append(_ShuffleStream(order_key, int(job.work.n)))
    if not settings[0].shuffle:
        epochs = [1] * len(jobs)
    return JobOrders(streams, epochs, device)
