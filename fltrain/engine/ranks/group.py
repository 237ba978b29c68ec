"""Several processes that train one run together, as torchrun starts them.

Each has its share of the jobs of every round, and all of the state.
"""

import contextlib
import re
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import Store

from ...counting import ceil_div
from ...tree import Tree
from ..jobs import Done
from ..sums import Sums
from .travel import (
    Form,
    SumShapes,
    agree_on_layout,
    describe_form,
    describe_sums,
    fill_sums,
    flatten_sums,
    pack,
    unpack,
)

_BLOCK = 1 << 22  # numbers that are exchanged at once: 32 MiB of each half of the sums
_FAULT = "fltrain fault"  # in the store: why a rank has left the group


class RankLost(RuntimeError):
    """Another rank is gone, or the run was ended from outside. What is on the disk stands."""


class FaultElsewhere(RuntimeError):
    """Another rank has a fault, which it raises itself."""


class Terminated(BaseException):
    """SIGTERM, which torchrun sends to all ranks when one has ended with a fault."""


class _Report(NamedTuple):
    """What a rank reports of its jobs before numbers travel.

    done: (job, loss, which of the forms it has, that travel of it); a form is listed once, for all
    jobs that have it.
    """

    sums: SumShapes
    done: list[tuple[int, float, int]]
    forms: list[Form]

    @property
    def own_bytes(self) -> int:
        """Bytes of what the rank's parties keep."""
        return sum(self.forms[form].nbytes for _, _, form in self.done)


@dataclass(frozen=True, eq=False)
class Ranks:
    """This process among all that train a run.

    rank: 0..size-1. store: what all ranks can read and write, None where the caller made the group.
    """

    rank: int = 0
    size: int = 1
    store: Store | None = None

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that evaluates, writes and shows how far the run is."""
        return self.rank == 0

    def share(self, costs: Sequence[float]) -> list[int]:
        """Return the places, ascending, of this rank's part of some work.

        Longest first, each to the rank that has least; of equals the first. Every rank calculates
        this by itself, and all find the same.
        """
        if self.size == 1:
            return list(range(len(costs)))
        loads = [0.0] * self.size
        mine = []
        for i in sorted(range(len(costs)), key=lambda i: -costs[i]):
            rank = loads.index(min(loads))
            loads[rank] += costs[i]
            if rank == self.rank:
                mine.append(i)
        return sorted(mine)

    def wait_for_all(self, fault: str | None = None) -> None:
        """Return when every rank has come here, or raise as `gather` does."""
        self.gather(None, fault)

    def gather(self, value: Any, fault: str | None = None) -> list[Any]:
        """Return the value of each rank, by rank. All ranks have to call it.

        FaultElsewhere where another rank, not this one, came with a fault instead.
        """
        if self.size == 1:
            return [value]
        received: list[Any] = [None] * self.size
        self._call(dist.all_gather_object, received, (fault, value))
        faults = [
            (rank, its_fault)
            for rank, (its_fault, _) in enumerate(received)
            if its_fault is not None
        ]
        if faults and faults[0][0] != self.rank:
            self._ignore_sigterm()
            raise FaultElsewhere(f"rank {faults[0][0]} ended: {faults[0][1]}")
        return [its_value for _, its_value in received]

    def exchange(self, sums: Sequence[Sums], done: list[Done], device: torch.device) -> list[Done]:
        """Return what all ranks have done.

        `sums`, by cell, then hold the uploads of all, with the bits that one rank would have
        calculated. device: of the sums and of what parties keep.
        """
        if self.size == 1:
            return done
        reports: list[_Report] = self.gather(_report(sums, done))
        layout = agree_on_layout(sums, [report.sums for report in reports])
        high, low = flatten_sums(sums, layout, device)
        own = _pack_owns(done, max(report.own_bytes for report in reports), device)
        owns = own.new_empty(self.size * len(own))
        # Barrier: all ranks have allocated their buffers. Past this point a failing rank can no
        # longer report through `gather`, since the others wait for its numbers.
        self.wait_for_all()
        with self._all_or_none():
            for a in range(0, len(high), _BLOCK):
                at = slice(a, a + _BLOCK)
                high[at] = self._block(high[at], low[at])
            if len(own):
                self._call(dist.all_gather, list(owns.view(self.size, len(own))), own)
        del low  # added into `high`: its memory is free for the sums
        fill_sums(sums, layout, high)
        return _unpack_done(reports, owns, len(own))

    def _block(self, high: Tensor, low: Tensor) -> Tensor:
        """Return high + low summed over the ranks, rounded once: [n] float64.

        Each rank sums one part of the block for all, then all ranks get the parts: what comes to a
        rank does not grow with their number.
        """
        width = ceil_div(len(high), self.size)
        halves = high.new_zeros(2, self.size * width)
        halves[0, : len(high)] = high
        halves[1, : len(low)] = low
        # [size, 2, width]: a part for each rank
        sent = halves.view(2, self.size, width).transpose(0, 1).contiguous()
        got = torch.empty_like(sent)
        self._call(dist.all_to_all_single, got, sent)
        mine = Sums(1)
        for its_high, its_low in got:
            other = Sums(1)
            other.high, other.low = {"": its_high}, {"": its_low}
            mine.merge(other)
        total = high.new_empty(self.size * width)
        self._call(dist.all_gather, list(total.view(self.size, width)), mine.total[""])
        return total[: len(high)]

    @contextlib.contextmanager
    def _all_or_none(self) -> Iterator[None]:
        """Do collectives that all ranks do, or none goes on.

        A fault among them takes this process out of the group, which ends those that wait.
        """
        try:
            yield
        except BaseException as error:
            if isinstance(error, Exception) and not isinstance(error, RankLost | FaultElsewhere):
                self._leave_fault(str(error) or type(error).__name__)
            dist.destroy_process_group()
            raise

    def _call(self, collective: Callable[..., Any], *args: Any) -> None:
        """Call a collective.

        FaultElsewhere where another rank has left in the midst of it and noted its fault in the
        store, RankLost where one is gone.
        """
        try:
            collective(*args)
        except RuntimeError as error:
            # its frames hold the group, whose connections would stay open when it is destroyed
            traceback.clear_frames(error.__traceback__)
            self._ignore_sigterm()
            fault = self._read_fault()
            if fault:
                raise FaultElsewhere(fault) from error
            # the first sentence, without gloo's place in its source, and its advice
            why = re.sub(r"^\[[^]]*\] |\. .*", "", str(error).partition("\n")[0])
            raise RankLost(
                f"the exchange with the other ranks failed, since one is gone ({why})"
            ) from error

    def _ignore_sigterm(self) -> None:
        """Keep torchrun's SIGTERM from coming between this rank and its message.

        That message says more. Until the end of `join_ranks`, which sets it back.
        """
        if self.store is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _leave_fault(self, text: str) -> None:
        """Write into the store why this rank leaves the group."""
        if self.store is None:
            return
        with contextlib.suppress(RuntimeError):  # the store was on a rank that is gone
            self.store.set(_FAULT, f"rank {self.rank} ended: {text}")

    def _read_fault(self) -> str:
        """Return why a rank has left the group; "" where none has."""
        if self.store is None:
            return ""
        with contextlib.suppress(RuntimeError):  # the store was on a rank that is gone
            if self.store.check([_FAULT]):
                return self.store.get(_FAULT).decode()
        return ""

    def claim_report(self) -> bool:
        """Return whether this rank, of those that are left, reports that another one is gone.

        The first that asks does.
        """
        if self.store is None:
            return self.is_first
        try:
            return self.store.add("fltrain said", 1) == 1
        except RuntimeError:  # it was on the rank that is gone
            return True


ALONE = Ranks()


def _list_travelling(one: Done) -> Tree:
    """Return the trees of a job that other ranks get."""
    return {"own": one.own, "moved": one.moved}


def _report(sums: Sequence[Sums], done: list[Done]) -> _Report:
    """Return what this rank reports of its jobs."""
    numbers: dict[Form, int] = {}
    rows = []
    for one in done:
        form = describe_form(_list_travelling(one))
        rows.append((one.job, one.loss, numbers.setdefault(form, len(numbers))))
    return _Report(describe_sums(sums), rows, list(numbers))


def _pack_owns(done: list[Done], n: int, device: torch.device) -> Tensor:
    """Return what this rank's parties keep in n bytes: all ranks send as much as the longest."""
    own = torch.zeros(n, dtype=torch.uint8, device=device)
    mine = pack([_list_travelling(one) for one in done], device)
    own[: len(mine)] = mine
    return own


def _unpack_done(reports: list[_Report], owns: Tensor, n: int) -> list[Done]:
    """Return what all ranks have done. owns: n bytes of each rank."""
    out = []
    for rank, report in enumerate(reports):
        at = rank * n
        for job, loss, number in report.done:
            form = report.forms[number]
            out.append(Done(job, loss, **unpack(form, owns, at)))
            at += form.nbytes
    return out
