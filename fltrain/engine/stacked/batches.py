"""Which examples the jobs of a stack see, in which order: `batches.py` for many jobs at once."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ...draws import key, orders, to_int64
from ...inputs.federated import PartyExamples
from ...interface import Batch
from ..batches import fixed_order_key
from ..jobs import Cell, Job

# Jobs of a stack by their place: the first ones (a range), or some of them, ascending.
JobPlaces = range | list[int]


class Deal:
    """The batches of J jobs, which have one batch size.

    n, per_epoch, steps: examples, batches of an epoch and steps of each job, on the host.
    """

    def __init__(self, cells: Sequence[Cell], jobs: Sequence[Job], round: int):
        data = [cells[job.cell].data.train for job in jobs]
        settings = cells[jobs[0].cell].settings
        self.device = data[0].y.device
        self.batch_size = settings.batch_size
        self.shuffle = settings.shuffle
        self.n = [int(job.work.n) for job in jobs]
        self.steps = [int(job.work.steps) for job in jobs]
        self.per_epoch = [-(-n // self.batch_size) for n in self.n]
        self.sources, self.source = _find_distinct(data)
        self.draws = any(
            source.prepare.augment is not None or source.prepare.noise for source in self.sources
        )
        pairs = zip(self.steps, self.per_epoch, strict=True)
        epochs = [-(-steps // each) for steps, each in pairs]
        # epochs of the whole run are counted from 1
        self.before = [(round - 1) * each + 1 for each in epochs]
        self._places: dict[tuple[int, ...], Tensor] = {}
        starts = [one.indptr[job.party] for one, job in zip(data, jobs, strict=True)]
        self.start = self.tensor(starts)
        self.size = self.tensor(self.n)
        self._per_epoch = self.tensor(self.per_epoch)
        self._before = self.tensor(self.before)
        keys = []
        for job in jobs:
            seed = cells[job.cell].settings.seed
            if self.shuffle:
                keys.append(key(seed, "job", round, job.party))
            else:
                keys.append(fixed_order_key(seed))
        if not self.shuffle:
            epochs = [1] * len(jobs)  # one order for all
        self._draw_orders(keys, epochs)

    def tensor(self, values: Sequence[int]) -> Tensor:
        """Return whole numbers on the device."""
        return torch.tensor(values, dtype=torch.int64, device=self.device)

    def _draw_orders(self, keys: list[int], epochs: list[int]) -> None:
        """Draw all orders: `dealt` has one after another, `base` [J] where those of a job begin.

        Jobs of one key and size have one order (a party that trains several models). One sort for
        each epoch of all orders that are about as long: padding to the longest of all would take
        too much memory.
        """
        wanted: dict[tuple[int, int], int] = {}  # (key, size) -> epochs
        for order_key, n, n_epochs in zip(keys, self.n, epochs, strict=True):
            wanted[order_key, n] = max(wanted.get((order_key, n), 0), n_epochs)
        begins: dict[tuple[int, int], int] = {}
        total = 0
        for (order_key, n), n_epochs in wanted.items():
            begins[order_key, n] = total
            total += n * n_epochs
        self.dealt = torch.empty(total + 1, dtype=torch.int64, device=self.device)
        for length in sorted({n.bit_length() for _, n in wanted}):
            alike = [one for one in wanted if one[1].bit_length() == length]
            for epoch in range(max(wanted[one] for one in alike)):
                now = [one for one in alike if wanted[one] > epoch]
                self._draw_epoch(now, epoch, [begins[one] for one in now])
        self.base = self.tensor([begins[one] for one in zip(keys, self.n, strict=True)])

    def _draw_epoch(self, asked: list[tuple[int, int]], epoch: int, begins: list[int]) -> None:
        """Draw the orders of one epoch for some (key, size), and write them behind their begins."""
        sizes = self.tensor([n for _, n in asked])
        width = max(n for _, n in asked)
        keys = self.tensor([to_int64(order_key) for order_key, _ in asked])
        order = orders(keys, epoch, sizes, width)  # [orders, width], padded
        starts = [begin + epoch * n for begin, (_, n) in zip(begins, asked, strict=True)]
        lane = torch.arange(width, device=self.device)
        at = self.tensor(starts).unsqueeze(1) + lane
        trash = len(self.dealt) - 1  # the last place takes the padding
        at = torch.where(lane < sizes.unsqueeze(1), at, trash)
        self.dealt[at.flatten()] = order.flatten()

    def sizes(self, step: int, rows: JobPlaces) -> list[int]:
        """Return how many examples each job has in that batch."""
        sizes = []
        for j in rows:
            batch = step % self.per_epoch[j]  # its number within the epoch
            left = self.n[j] - batch * self.batch_size
            sizes.append(min(self.batch_size, left))
        return sizes

    def epochs(self, step: int, rows: JobPlaces) -> list[int]:
        """Return the epoch of each job's local training, from 0."""
        return [step // self.per_epoch[j] for j in rows]

    def of(self, values: Tensor, rows: JobPlaces) -> Tensor:
        """Return the values [J, ...] of those jobs; a view where they are the first ones."""
        if isinstance(rows, range):
            return values[: len(rows)]
        return values[self.at(rows)]

    def at(self, rows: list[int]) -> Tensor:
        """Return places as a tensor, which is brought to the device once."""
        places = tuple(rows)
        if places not in self._places:
            self._places[places] = self.tensor(places)
        return self._places[places]

    def take(self, step: int, rows: JobPlaces, width: int) -> Batch:
        """Return the batches of some jobs: x [R, width, ...], y [R, width].

        mask [R, width]: False where a batch is shorter, None where none is. epoch: [R], or one
        number where it is equal.
        """
        epochs = set(self.epochs(step, rows))
        n = self.of(self.size, rows)
        per_epoch = self.of(self._per_epoch, rows)
        epoch = step // per_epoch
        begin_of_batch = (step % per_epoch * self.batch_size).unsqueeze(1)
        lane = begin_of_batch + torch.arange(width, device=self.device)  # place within the epoch
        mask = None
        if min(self.sizes(step, rows)) < width:
            mask = lane < n.unsqueeze(1)
            lane = torch.where(mask, lane, 0)  # padding repeats the first example
        begin = self.of(self.base, rows)
        if self.shuffle:  # else there is one order for all epochs
            begin = begin + epoch * n
        start = self.of(self.start, rows).unsqueeze(1)
        at = start + self.dealt[begin.unsqueeze(1) + lane]
        x, y = self._gather(at, rows, self._run_epoch(step, rows, epoch))
        common = epochs.pop() if len(epochs) == 1 else epoch
        return Batch(x, y, mask, epoch=common, step=step)

    def _run_epoch(self, step: int, rows: JobPlaces, epoch: Tensor) -> int | Tensor:
        """Return the epoch of the whole run: one for all jobs, or [R].

        1 where nothing is drawn by it, so that it is not calculated in vain.
        """
        if not self.draws:
            return 1
        epochs = self.epochs(step, rows)
        known = {self.before[j] + each for j, each in zip(rows, epochs, strict=True)}
        if len(known) == 1:
            return known.pop()
        return self.of(self._before, rows) + epoch

    def _gather(self, at: Tensor, rows: JobPlaces, epoch: int | Tensor) -> tuple[Tensor, Tensor]:
        """Return (x, y) of the examples `at` [R, width], with one call for each source."""
        if len(self.sources) == 1:
            return _load(self.sources[0], at, epoch)
        where, parts = [], []
        for number, source in enumerate(self.sources):
            mine = [i for i, j in enumerate(rows) if self.source[j] == number]
            if mine:
                places = self.at(mine)
                its_epoch = epoch[places] if isinstance(epoch, Tensor) else epoch
                where.append(places)
                parts.append(_load(source, at[places], its_epoch))
        back = torch.argsort(torch.cat(where))
        x, y = (torch.cat(leaves)[back] for leaves in zip(*parts, strict=True))
        return x, y

    def in_order(self, start: Tensor, size: Tensor, source: Tensor) -> Iterator[Batch]:
        """Yield every example of one job once, for a full gradient; padded to the longest job.

        Within `torch.func.vmap`, so that the three are numbers of a job that is not known here:
        an example is read from every source, and the right one is taken.
        """
        longest = max(self.n)
        for begin in range(0, longest, self.batch_size):
            width = min(self.batch_size, longest - begin)
            lane = begin + torch.arange(width, device=self.device)
            mask = lane < size
            at = start + torch.where(mask, lane, 0)
            first, *others = self.sources
            there = torch.where(source == 0, at, 0) if others else at
            x, y = first.inputs(there), first.y[there]
            for number, other in enumerate(others, 1):
                is_its = source == number
                there = torch.where(is_its, at, 0)
                x = torch.where(is_its, other.inputs(there), x)
                y = torch.where(is_its, other.y[there], y)
            yield Batch(x, y, mask, 0, 0)


def _load(source: PartyExamples, at: Tensor, epoch: int | Tensor) -> tuple[Tensor, Tensor]:
    """Return x [R, width, ...] and y [R, width] of the examples `at`. epoch: one, or [R]."""
    flat = at.flatten()
    width = at.shape[1]
    each = epoch.repeat_interleave(width) if isinstance(epoch, Tensor) else epoch
    x = source.inputs(flat, each)
    y = source.y[flat]
    return x.reshape(*at.shape, *x.shape[1:]), y.reshape(at.shape)


def _find_distinct(data: Sequence[PartyExamples]) -> tuple[list[PartyExamples], list[int]]:
    """Return the examples that differ, and for each job which of them it has."""
    sources: list[PartyExamples] = []
    which = []
    for one in data:
        known = [number for number, other in enumerate(sources) if _gives_same_inputs(one, other)]
        which.append(known[0] if known else len(sources))
        if not known:
            sources.append(one)
    return sources, which


def _gives_same_inputs(a: PartyExamples, b: PartyExamples) -> bool:
    """Return whether both give the same inputs for the same places: same tensors, same draws."""
    if a is b:
        return True
    if any(getattr(a, name) is not getattr(b, name) for name in ("x", "y", "rows", "party")):
        return False
    p, q = a.prepare, b.prepare
    if p.normalise is not q.normalise:
        return False
    if [id(one) for one in p.noise] != [id(one) for one in q.noise]:
        return False
    if p.augment is None or q.augment is None:
        return p.augment is q.augment
    return vars(p.augment) == vars(q.augment)
