"""Several processes that train one run together, as torchrun starts them: each has its share of the jobs of every round, and all of the state."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ..jobs import Done
from ..sums import Sums
from .travel import Form, form_of, packed, unpacked

_BLOCK = 1 << 22  # numbers that are exchanged at once: 32 MiB of each half of the sums


class Lost(RuntimeError):
    """Another rank is gone, or the run was ended from outside. What is on the disk stands."""


class Elsewhere(RuntimeError):
    """Another rank has a fault, which it raises itself."""


class Terminated(BaseException):
    """SIGTERM, which torchrun sends to all ranks when one has ended with a fault."""


@dataclass(frozen=True, eq=False)
class Ranks:
    """This process among all that train a run. rank: 0..size-1. store: what all see, None where the caller made the group."""

    rank: int = 0
    size: int = 1
    store: dist.Store | None = None

    @property
    def first(self) -> bool:
        """Whether this is the one that evaluates, writes and says."""
        return self.rank == 0

    def share(self, costs: Sequence[float]) -> list[int]:
        """The places, ascending, of this rank's part of some work: longest first, each to the rank that has least; of equals the first."""
        if self.size == 1:
            return list(range(len(costs)))
        have = [0.0] * self.size
        mine = []
        for i in sorted(range(len(costs)), key=lambda i: -costs[i]):
            rank = have.index(min(have))
            have[rank] += costs[i]
            if rank == self.rank:
                mine.append(i)
        return sorted(mine)

    def gather(self, value: Any = None, fault: str | None = None) -> list[Any]:
        """What each rank gives, by rank. All ranks have to call it. Elsewhere where another rank, not this one, came with a fault instead."""
        if self.size == 1:
            return [value]
        heard: list[Any] = [None] * self.size
        _call(dist.all_gather_object, heard, (fault, value))
        faults = [(rank, said) for rank, (said, _) in enumerate(heard) if said is not None]
        if faults and faults[0][0] != self.rank:
            raise Elsewhere(f"rank {faults[0][0]} ended: {faults[0][1]}")
        return [given for _, given in heard]

    def exchange(self, sums: Sequence[Sums], done: list[Done], device: torch.device) -> list[Done]:
        """What all ranks have done. `sums`, by cell, hold the uploads of all afterwards, with the bits that one rank would have given them.

        device: of the sums and of what parties keep.
        """
        if self.size == 1:
            return done
        forms: dict[Form, int] = {}
        rows = [(one.job, one.loss, forms.setdefault(form_of(one.own), len(forms))) for one in done]
        shapes = [({path: high.shape for path, high in one.high.items()}, one.empty) for one in sums]
        heard = self.gather((shapes, rows, list(forms)))
        self._add_up(sums, [told[0] for told in heard], device)
        return self._owns(done, [[(job, loss, its[form]) for job, loss, form in rows] for _, rows, its in heard], device)

    def _add_up(self, sums: Sequence[Sums], shapes: list[list[Any]], device: torch.device) -> None:
        """Each rank adds up a part of the numbers, in the order of ranks, and sends what it has got to all."""
        layout: list[dict[str, torch.Size]] = [{} for _ in sums]  # the same at every rank, also where one has had no job of a cell
        for told in shapes:
            for one, all_of_it, (its, empty) in zip(sums, layout, told, strict=True):
                one.empty = one.empty or empty
                all_of_it |= its
        if not any(layout):
            return
        high, low = (
            torch.cat([_flat(half, its, device) for half, its in zip(halves, layout, strict=True)])
            for halves in ([one.high for one in sums], [one.low for one in sums])
        )
        for one in sums:
            one.high, one.low = {}, {}  # not kept twice, and made anew in the order of the layout
        for a in range(0, len(high), _BLOCK):
            high[a : a + _BLOCK] = self._block(high[a : a + _BLOCK], low[a : a + _BLOCK])
        low.zero_()
        end = 0
        for one, its in zip(sums, layout, strict=True):
            for path, shape in its.items():
                start, end = end, end + shape.numel()
                one.high[path], one.low[path] = high[start:end].view(shape), low[start:end].view(shape)

    def _block(self, high: Tensor, low: Tensor) -> Tensor:
        """high + low summed over the ranks, rounded once: [n] float64."""
        width = -(-len(high) // self.size)
        halves = high.new_zeros(2, self.size * width)
        halves[0, : len(high)], halves[1, : len(low)] = high, low
        sent = halves.view(2, self.size, width).transpose(0, 1).contiguous()  # [size, 2, width]: a part for each rank
        got = torch.empty_like(sent)
        _call(dist.all_to_all_single, got, sent)
        mine = Sums(1)
        for its in got:
            other = Sums(1)
            other.high, other.low = {"": its[0]}, {"": its[1]}
            mine.merge(other)
        total = high.new_empty(self.size * width)
        _call(dist.all_gather, list(total.view(self.size, width)), mine.total[""])
        return total[: len(high)]

    def _owns(self, done: list[Done], told: list[list[tuple[int, float, Form]]], device: torch.device) -> list[Done]:
        """All that was done, with what parties keep. told: (job, loss, form of own), by rank."""
        own = packed([one.own for one in done], device)
        sizes = [sum(form.nbytes for _, _, form in rows) for rows in told]
        if not max(sizes):
            return [Done(job, loss, unpacked(form, own, 0)) for rows in told for job, loss, form in rows]
        sent = torch.zeros(max(sizes), dtype=torch.uint8, device=device)
        sent[: len(own)] = own
        got = sent.new_empty(self.size * len(sent))
        _call(dist.all_gather, list(got.view(self.size, len(sent))), sent)
        out = []
        for rank, rows in enumerate(told):
            at = rank * len(sent)
            for job, loss, form in rows:
                out.append(Done(job, loss, unpacked(form, got, at)))
                at += form.nbytes
        return out

    def speaks(self) -> bool:
        """Whether this is the rank, of those that are left, to say that another one is gone: the first that asks."""
        if self.store is None:
            return self.first
        try:
            return self.store.add("fltrain said", 1) == 1
        except RuntimeError:  # it was on the rank that is gone
            return True


ALONE = Ranks()


def _call(collective: Callable[..., Any], *args: Any) -> None:
    """A collective. Lost where another rank is gone."""
    try:
        collective(*args)
    except RuntimeError as error:
        why = re.sub(r"^\[[^]]*\] |\. .*", "", str(error).partition("\n")[0])  # without gloo's place in its source, and its advice
        raise Lost(f"the exchange with the other ranks failed, since one is gone ({why})") from error


def _flat(half: dict[str, Tensor], layout: dict[str, torch.Size], device: torch.device) -> Tensor:
    """One half of a cell's sums, 0 where this rank has added nothing."""
    none = torch.zeros(0, dtype=torch.float64, device=device)
    parts = [half[path].flatten() if path in half else none.new_zeros(shape.numel()) for path, shape in layout.items()]
    return torch.cat([none, *parts])
