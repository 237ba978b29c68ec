"""Which examples the jobs of a stack see, in which order: those of `batches.py`, for many jobs at once."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ...draws import key, orders, signed
from ...inputs.federated import PartyExamples
from ...interface import Batch
from ..batches import fixed_order_key
from ..jobs import Cell, Job

JobPlaces = (
    range | list[int]
)  # jobs of a stack by their place: the first ones, or some of them, ascending


class Deal:
    """The batches of J jobs, which have one batch size. n, per_epoch, steps: of each job, on the host."""

    def __init__(self, cells: Sequence[Cell], jobs: Sequence[Job], round: int):
        data = [cells[job.cell].data.train for job in jobs]
        settings = cells[jobs[0].cell].settings
        self.device = data[0].y.device
        self.batch_size = settings.batch_size
        self.n = [int(job.work.n) for job in jobs]
        self.steps = [int(job.work.steps) for job in jobs]
        self.per_epoch = [-(-n // self.batch_size) for n in self.n]
        self.sources, self.source = _distinct(data)
        self.draws = any(
            source.prepare.augment is not None or source.prepare.noise for source in self.sources
        )
        epochs = [-(-steps // each) for steps, each in zip(self.steps, self.per_epoch, strict=True)]
        self.before = [
            (round - 1) * e + 1 for e in epochs
        ]  # epochs of the whole run are counted from 1
        self._made: dict[tuple[int, ...], Tensor] = {}
        self.start = self.tensor([d.indptr[job.party] for d, job in zip(data, jobs, strict=True)])
        self.size, self._per_epoch, self._before = (
            self.tensor(self.n),
            self.tensor(self.per_epoch),
            self.tensor(self.before),
        )
        self.shuffle = settings.shuffle
        seeds = [cells[job.cell].settings.seed for job in jobs]
        keys = [
            key(seed, "job", round, job.party) if self.shuffle else fixed_order_key(seed)
            for seed, job in zip(seeds, jobs, strict=True)
        ]
        self._deal(keys, epochs if self.shuffle else [1] * len(jobs))

    def tensor(self, values: Sequence[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=self.device)

    def _deal(self, keys: list[int], epochs: list[int]) -> None:
        """dealt: all orders one after another, epoch by epoch; base [J]: where those of a job begin. Jobs of one key and size have one order.

        One sort for each epoch, of all orders that are about as long: padding to the longest of all would take too much memory.
        """
        asked: dict[tuple[int, int], int] = {}
        for k, n, e in zip(keys, self.n, epochs, strict=True):
            asked[k, n] = max(asked.get((k, n), 0), e)
        begins, total = {}, 0
        for (k, n), e in asked.items():
            begins[k, n], total = total, total + n * e
        self.dealt = torch.empty(total + 1, dtype=torch.int64, device=self.device)
        for length in sorted({n.bit_length() for _, n in asked}):
            some = [(k, n) for k, n in asked if n.bit_length() == length]
            for epoch in range(max(asked[one] for one in some)):
                now = [one for one in some if asked[one] > epoch]
                sizes, width = self.tensor([n for _, n in now]), max(n for _, n in now)
                order = orders(self.tensor([signed(k) for k, _ in now]), epoch, sizes, width)
                at = self.tensor([begins[one] + epoch * one[1] for one in now]).unsqueeze(
                    1
                ) + torch.arange(width, device=self.device)
                at = torch.where(
                    torch.arange(width, device=self.device) < sizes.unsqueeze(1), at, total
                )  # the last place takes what is no order
                self.dealt[at.flatten()] = order.flatten()
        self.base = self.tensor([begins[k, n] for k, n in zip(keys, self.n, strict=True)])

    def sizes(self, step: int, rows: JobPlaces) -> list[int]:
        """Examples in that batch of each job."""
        return [
            min(self.batch_size, self.n[j] - step % self.per_epoch[j] * self.batch_size)
            for j in rows
        ]

    def epochs(self, step: int, rows: JobPlaces) -> list[int]:
        """Of the local training, from 0."""
        return [step // self.per_epoch[j] for j in rows]

    def of(self, values: Tensor, rows: JobPlaces) -> Tensor:
        """values [J, ...] of those jobs; a view where they are the first ones."""
        return values[: len(rows)] if isinstance(rows, range) else values[self.at(rows)]

    def at(self, rows: list[int]) -> Tensor:
        """Places as a tensor, brought to the device once."""
        if (made := tuple(rows)) not in self._made:
            self._made[made] = self.tensor(made)
        return self._made[made]

    def take(self, step: int, rows: JobPlaces, width: int) -> Batch:
        """x [R, width, ...], y [R, width]. mask [R, width]: False where a batch is shorter, None where none is. epoch: [R], one where it is equal."""
        epochs = set(self.epochs(step, rows))
        n, per_epoch = self.of(self.size, rows), self.of(self._per_epoch, rows)
        epoch = step // per_epoch
        lane = (step % per_epoch * self.batch_size).unsqueeze(1) + torch.arange(
            width, device=self.device
        )
        mask = None if min(self.sizes(step, rows)) >= width else lane < n.unsqueeze(1)
        lane = lane if mask is None else torch.where(mask, lane, 0)
        begin = self.of(self.base, rows) + (epoch * n if self.shuffle else 0)
        at = self.dealt[begin.unsqueeze(1) + lane] + self.of(self.start, rows).unsqueeze(1)
        return Batch(
            *self._gathered(at, rows, self._run_epoch(step, rows, epoch)),
            mask,
            epochs.pop() if len(epochs) == 1 else epoch,
            step,
        )

    def _run_epoch(self, step: int, rows: JobPlaces, epoch: Tensor) -> int | Tensor:
        """Epoch of the whole run, where something is drawn by it: one for all, or [R]."""
        if not self.draws:
            return 1
        known = {self.before[j] + e for j, e in zip(rows, self.epochs(step, rows), strict=True)}
        return known.pop() if len(known) == 1 else self.of(self._before, rows) + epoch

    def _gathered(self, at: Tensor, rows: JobPlaces, epoch: int | Tensor) -> tuple[Tensor, Tensor]:
        """(x, y) of the examples `at` [R, width], one call for each source."""
        if len(self.sources) == 1:
            return _inputs(self.sources[0], at, epoch)
        where, x, y = [], [], []
        for s, source in enumerate(self.sources):
            if mine := [i for i, j in enumerate(rows) if self.source[j] == s]:
                where.append(self.at(mine))
                its_x, its_y = _inputs(
                    source, at[where[-1]], epoch[where[-1]] if isinstance(epoch, Tensor) else epoch
                )
                x.append(its_x)
                y.append(its_y)
        back = torch.argsort(torch.cat(where))
        return torch.cat(x)[back], torch.cat(y)[back]

    def in_order(self, start: Tensor, size: Tensor, source: Tensor) -> Iterator[Batch]:
        """Every example of one job once, for a full gradient; padded to the longest job. Within `torch.func.vmap`, the three have no axis."""
        for begin in range(0, max(self.n), self.batch_size):
            lane = begin + torch.arange(
                min(self.batch_size, max(self.n) - begin), device=self.device
            )
            mask = lane < size
            at = start + torch.where(mask, lane, 0)
            first, *others = self.sources
            there = torch.where(source == 0, at, 0) if others else at
            x, y = first.inputs(there), first.y[there]
            for s, other in enumerate(others, 1):
                mine = source == s
                there = torch.where(mine, at, 0)
                x, y = (
                    torch.where(mine, other.inputs(there), x),
                    torch.where(mine, other.y[there], y),
                )
            yield Batch(x, y, mask, 0, 0)


def _inputs(source: PartyExamples, at: Tensor, epoch: int | Tensor) -> tuple[Tensor, Tensor]:
    """x [R, width, ...], y [R, width]. epoch: one, or [R]."""
    flat = at.flatten()
    each = epoch.repeat_interleave(at.shape[1]) if isinstance(epoch, Tensor) else epoch
    x = source.inputs(flat, each)
    return x.reshape(*at.shape, *x.shape[1:]), source.y[flat].reshape(at.shape)


def _distinct(data: Sequence[PartyExamples]) -> tuple[list[PartyExamples], list[int]]:
    """The examples that differ in content or in what is done to a batch, and which of them each job has."""
    sources: list[PartyExamples] = []
    which = []
    for one in data:
        s = next((s for s, other in enumerate(sources) if _alike(one, other)), len(sources))
        if s == len(sources):
            sources.append(one)
        which.append(s)
    return sources, which


def _alike(a: PartyExamples, b: PartyExamples) -> bool:
    """Whether they give the same inputs for the same places: the same tensors, and the same draws."""
    if a is b:
        return True
    p, q = a.prepare, b.prepare
    same = (
        a.x is b.x
        and a.y is b.y
        and a.rows is b.rows
        and a.party is b.party
        and p.normalise is q.normalise
    )
    drawn = len(p.noise) == len(q.noise) and all(
        m is n for m, n in zip(p.noise, q.noise, strict=True)
    )
    augmented = p.augment is q.augment or (
        p.augment is not None and q.augment is not None and vars(p.augment) == vars(q.augment)
    )
    return same and drawn and augmented
