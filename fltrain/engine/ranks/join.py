"""Becoming one rank among others, and the end of that: of all, or by the fault of one."""

import contextlib
import functools
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from niidpart.errors import UsageError

from .group import ALONE, FaultElsewhere, RankLost, Ranks, Terminated

_START = timedelta(minutes=10)  # for all ranks to come
_PATIENCE = timedelta(days=1)  # for a rank that is slow; one whose process ends is noticed at once
# Seconds for the rank that has a fault to say it, before the others end: torchrun stops all when
# the first one ends.
_GRACE = 5.0
_ADDRESS = ("RANK", "MASTER_ADDR", "MASTER_PORT")  # what torchrun sets, with WORLD_SIZE

# Those of the `join_ranks` that this code is in.
_CURRENT: ContextVar[Ranks | None] = ContextVar("ranks", default=None)


def current_ranks() -> Ranks:
    """Return the ranks that this code is one of: the same until the end of `join_ranks`.

    The doors ask this once and hand the answer on. It is asked again where no caller could: by an
    executor that is made by its name, and outside a run.
    """
    return _CURRENT.get() or ALONE


@contextlib.contextmanager
def join_ranks() -> Iterator[Ranks]:
    """Stand among the other ranks.

    Those of the caller's process group, else those that torchrun has started; alone where there are
    none. Within another `join_ranks` this is that one. UsageError where the environment names ranks
    but not how to reach them.

    All ranks come to the end of this together, or none does: what one raises ends the others with
    `FaultElsewhere`, and the end of a process with `RankLost`. A fault in the midst of an exchange
    takes this process out of its group, the caller's too, since nothing else would end the others.
    """
    outer = _CURRENT.get()
    if outer is not None:
        yield outer
    elif dist.is_initialized() and dist.get_world_size() > 1:
        with _run_as(Ranks(dist.get_rank(), dist.get_world_size()), is_waiting=False) as ranks:
            yield ranks
    elif not dist.is_initialized() and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        with _make_group() as made, _run_as(made, is_waiting=True) as ranks:
            yield ranks
    else:
        yield ALONE


@contextlib.contextmanager
def _run_as(ranks: Ranks, is_waiting: bool) -> Iterator[Ranks]:
    """Be one of these ranks within, and share how each of them ends."""
    with _share_end(ranks, is_waiting):
        token = _CURRENT.set(ranks)
        try:
            yield ranks
        finally:
            _CURRENT.reset(token)


@contextlib.contextmanager
def _share_end(ranks: Ranks, is_waiting: bool) -> Iterator[None]:
    """Send the others what ends this rank, and receive what ends another.

    is_waiting: give that one time to report it.
    """
    try:
        with _send_fault(ranks):
            with warnings.catch_warnings():
                if not ranks.is_first:
                    warnings.simplefilter("ignore")  # the first rank says them
                yield
            ranks.wait_for_all()
    except FaultElsewhere:
        if is_waiting:
            with contextlib.suppress(Terminated):
                time.sleep(_GRACE)
        raise
    except Terminated as error:
        raise RankLost(f"{error}; what is on the disk stands") from error


@contextlib.contextmanager
def _send_fault(ranks: Ranks) -> Iterator[None]:
    """Send the others what is raised within, unless it came from them."""
    try:
        yield
    except (FaultElsewhere, RankLost):
        raise
    except Exception as error:
        if dist.is_initialized():  # else this rank has left the group, and has noted why
            with contextlib.suppress(RankLost, Terminated):  # a rank that is gone needs no message
                ranks.wait_for_all(fault=str(error) or type(error).__name__)
        raise


@contextlib.contextmanager
def _make_group() -> Iterator[Ranks]:
    """Make the process group that torchrun's environment describes, and end it.

    Each rank of a machine takes the GPU of its number there.
    """
    environment = os.environ
    missing = [name for name in _ADDRESS if name not in environment]
    if missing:
        raise UsageError(
            f"WORLD_SIZE is {environment['WORLD_SIZE']}, but {', '.join(missing)} is not set; "
            "start with torchrun, or unset WORLD_SIZE"
        )
    local = int(environment.get("LOCAL_RANK", "0"))
    if local < torch.cuda.device_count():
        torch.cuda.set_device(local)
    rank, size = int(environment["RANK"]), int(environment["WORLD_SIZE"])
    address = [environment[name] for name in ("WORLD_SIZE", *_ADDRESS)]
    store = _connect_store(os.getpid(), *address)
    # Keys of its own for each group: gloo would take the addresses of the one before for those of
    # this one.
    store = PrefixStore(f"fltrain {store.add(f'groups of {rank}', 1)}", store)
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo",
        store=store,
        rank=rank,
        world_size=size,
        timeout=_PATIENCE,
    )
    try:
        with _raise_sigterm():
            yield Ranks(rank, size, store)
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


@functools.lru_cache(maxsize=1)
def _connect_store(pid: int, *address: str) -> Store:
    """Return the store that all ranks see.

    One for all groups of a process: without torchrun it is on the first rank, and would end under
    those that join again. pid, address: a fork, or another address, is another store.
    """
    store, _, _ = next(rendezvous("env://", timeout=_START))
    return store  # type: ignore[no-any-return]


@contextlib.contextmanager
def _raise_sigterm() -> Iterator[None]:
    """Raise SIGTERM as Terminated, once, so that it can be said what stands.

    In the main thread alone: python has it no other way.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated(
            "the run was ended from outside (SIGTERM), as torchrun does when a rank is gone"
        )

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
