"""Several processes that train one run together, as torchrun starts them: each has its share of the jobs of every round, and all of the state."""

import contextlib
import re
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ..jobs import Done
from ..sums import Sums
from .travel import Form, describe_form, pack, unpack

Layout = list[
    dict[str, torch.Size]
]  # by cell: the shapes of its sums, in the order in which they travel
Told = list[list[tuple[int, float, Form]]]  # by rank: (job, loss, form of own)

_BLOCK = 1 << 22  # numbers that are exchanged at once: 32 MiB of each half of the sums
_FAULT = "fltrain fault"  # in the store: why a rank has left the group


class RankLost(RuntimeError):
    """Another rank is gone, or the run was ended from outside. What is on the disk stands."""


class FaultElsewhere(RuntimeError):
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
    def is_first(self) -> bool:
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
        self._call(dist.all_gather_object, heard, (fault, value))
        faults = [(rank, said) for rank, (said, _) in enumerate(heard) if said is not None]
        if faults and faults[0][0] != self.rank:
            self._undisturbed()
            raise FaultElsewhere(f"rank {faults[0][0]} ended: {faults[0][1]}")
        return [given for _, given in heard]

    def exchange(self, sums: Sequence[Sums], done: list[Done], device: torch.device) -> list[Done]:
        """What all ranks have done. `sums`, by cell, hold the uploads of all afterwards, with the bits that one rank would have given them.

        device: of the sums and of what parties keep.
        """
        if self.size == 1:
            return done
        forms: dict[Form, int] = {}
        rows = [
            (one.job, one.loss, forms.setdefault(describe_form(one.own), len(forms)))
            for one in done
        ]
        shapes = [
            ({path: high.shape for path, high in one.high.items()}, one.empty) for one in sums
        ]
        heard = self.gather((shapes, rows, list(forms)))
        told: Told = [
            [(job, loss, its[form]) for job, loss, form in rows] for _, rows, its in heard
        ]
        layout = _layout(sums, [shapes for shapes, _, _ in heard])
        high, low = _flattened(sums, layout, device)
        own, owns = _room(done, told, device)
        self.gather()  # whether all have room: from here on a rank that stops cannot say it in turn, since the others wait for its numbers
        with self._whole():
            for a in range(0, len(high), _BLOCK):
                high[a : a + _BLOCK] = self._block(high[a : a + _BLOCK], low[a : a + _BLOCK])
            if len(own):
                self._call(dist.all_gather, list(owns.view(self.size, len(own))), own)
        _laid_out(sums, layout, high, low.zero_())
        return _all_done(told, owns, len(own))

    def _block(self, high: Tensor, low: Tensor) -> Tensor:
        """high + low summed over the ranks, rounded once: [n] float64."""
        width = -(-len(high) // self.size)
        halves = high.new_zeros(2, self.size * width)
        halves[0, : len(high)], halves[1, : len(low)] = high, low
        sent = (
            halves.view(2, self.size, width).transpose(0, 1).contiguous()
        )  # [size, 2, width]: a part for each rank
        got = torch.empty_like(sent)
        self._call(dist.all_to_all_single, got, sent)
        mine = Sums(1)
        for its in got:
            other = Sums(1)
            other.high, other.low = {"": its[0]}, {"": its[1]}
            mine.merge(other)
        total = high.new_empty(self.size * width)
        self._call(dist.all_gather, list(total.view(self.size, width)), mine.total[""])
        return total[: len(high)]

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """Collectives that all ranks do, or none goes on: a fault among them takes this process out of the group, which ends those that wait."""
        try:
            yield
        except BaseException as error:
            if (
                self.store is not None
                and isinstance(error, Exception)
                and not isinstance(error, RankLost | FaultElsewhere)
            ):
                with contextlib.suppress(RuntimeError):  # the store was on a rank that is gone
                    self.store.set(
                        _FAULT, f"rank {self.rank} ended: {str(error) or type(error).__name__}"
                    )
            dist.destroy_process_group()
            raise

    def _call(self, collective: Callable[..., Any], *args: Any) -> None:
        """A collective. Elsewhere where another rank has left in the midst of it and said why, Lost where one is gone."""
        try:
            collective(*args)
        except RuntimeError as error:
            traceback.clear_frames(
                error.__traceback__
            )  # they hold the group, whose connections would stay open when it is destroyed
            self._undisturbed()
            if said := self._fault():
                raise FaultElsewhere(said) from error
            why = re.sub(
                r"^\[[^]]*\] |\. .*", "", str(error).partition("\n")[0]
            )  # without gloo's place in its source, and its advice
            raise RankLost(
                f"the exchange with the other ranks failed, since one is gone ({why})"
            ) from error

    def _undisturbed(self) -> None:
        """From here on torchrun's SIGTERM, which would say only what is known, does not come between this rank and its message."""
        if self.store is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # until `joined` ends, which has set it

    def _fault(self) -> str:
        """What a rank has said that left the group; "" for nothing."""
        with contextlib.suppress(RuntimeError):  # the store was on a rank that is gone
            if self.store is not None and self.store.check([_FAULT]):
                return str(self.store.get(_FAULT).decode())
        return ""

    def speaks(self) -> bool:
        """Whether this is the rank, of those that are left, to say that another one is gone: the first that asks."""
        if self.store is None:
            return self.is_first
        try:
            return self.store.add("fltrain said", 1) == 1
        except RuntimeError:  # it was on the rank that is gone
            return True


ALONE = Ranks()


def _layout(sums: Sequence[Sums], shapes: list[list[Any]]) -> Layout:
    """The same at every rank, also where one has had no job of a cell. shapes: ({path: shape}, empty trees) by cell, by rank."""
    layout: Layout = [{} for _ in sums]
    for told in shapes:
        for one, all_of_it, (its, empty) in zip(sums, layout, told, strict=True):
            one.empty = one.empty or empty
            all_of_it |= its
    return layout


def _flattened(sums: Sequence[Sums], layout: Layout, device: torch.device) -> tuple[Tensor, Tensor]:
    """Both halves of all sums, [n] float64 each, 0 where this rank has added nothing. The sums are left empty, so that nothing is there twice."""
    high, low = (
        torch.cat([_flat(half, its, device) for half, its in zip(halves, layout, strict=True)])
        for halves in ([one.high for one in sums], [one.low for one in sums])
    )
    for one in sums:
        one.high, one.low = {}, {}
    return high, low


def _flat(half: dict[str, Tensor], layout: dict[str, torch.Size], device: torch.device) -> Tensor:
    none = torch.zeros(0, dtype=torch.float64, device=device)
    parts = [
        half[path].flatten() if path in half else none.new_zeros(shape.numel())
        for path, shape in layout.items()
    ]
    return torch.cat([none, *parts])


def _laid_out(sums: Sequence[Sums], layout: Layout, high: Tensor, low: Tensor) -> None:
    """The sums as views into both halves."""
    end = 0
    for one, its in zip(sums, layout, strict=True):
        for path, shape in its.items():
            start, end = end, end + shape.numel()
            one.high[path], one.low[path] = high[start:end].view(shape), low[start:end].view(shape)


def _room(done: list[Done], told: Told, device: torch.device) -> tuple[Tensor, Tensor]:
    """(what this rank's parties keep, room for that of all ranks), bytes: [n] and [ranks * n]."""
    n = max(sum(form.nbytes for _, _, form in rows) for rows in told)
    own = torch.zeros(n, dtype=torch.uint8, device=device)
    mine = pack([one.own for one in done], device)
    own[: len(mine)] = mine
    return own, own.new_empty(len(told) * n)


def _all_done(told: Told, owns: Tensor, n: int) -> list[Done]:
    """What all ranks have done. owns: n bytes of each."""
    out = []
    for rank, rows in enumerate(told):
        at = rank * n
        for job, loss, form in rows:
            out.append(Done(job, loss, unpack(form, owns, at)))
            at += form.nbytes
    return out
