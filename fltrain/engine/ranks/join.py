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
from torch.distributed.rendezvous import rendezvous

from niidpart.errors import UsageError

from .group import ALONE, FaultElsewhere, RankLost, Ranks, Terminated

_START = timedelta(minutes=10)  # for all ranks to come
_PATIENCE = timedelta(days=1)  # for a rank that is slow; one whose process ends is noticed at once
_GRACE = 5.0  # seconds for the rank that has a fault to say it, before the others end: torchrun stops all when the first one ends

_CURRENT: ContextVar[Ranks | None] = ContextVar(
    "ranks", default=None
)  # those of the `joined` that this code is in


def current_ranks() -> Ranks:
    """The ranks that this code is one of."""
    return _CURRENT.get() or ALONE


@contextlib.contextmanager
def join_ranks() -> Iterator[Ranks]:
    """Among the other ranks: those of the caller's process group, else those that torchrun has started; alone where there are none.

    All ranks come to the end of this together, or none does: what one raises ends the others with `Elsewhere`, and the end of a process with
    `Lost`. A fault in the midst of an exchange takes this process out of its group, the caller's too, since nothing else would end the others.
    Within another `joined` this is that one. ValueError where the environment names ranks but not how to reach them.
    """
    if (outer := _CURRENT.get()) is not None:
        yield outer
        return
    ours = not dist.is_initialized() and int(os.environ.get("WORLD_SIZE", "1")) > 1
    if not ours and not (dist.is_initialized() and dist.get_world_size() > 1):
        yield ALONE
        return
    with (
        _made()
        if ours
        else contextlib.nullcontext(Ranks(dist.get_rank(), dist.get_world_size())) as ranks,
        _heard(ranks, wait=ours),
    ):
        token = _CURRENT.set(ranks)
        try:
            yield ranks
        finally:
            _CURRENT.reset(token)


@contextlib.contextmanager
def _heard(ranks: Ranks, wait: bool) -> Iterator[None]:
    """Tells the others what ends this rank, and hears what ends another. wait: for that one to say it."""
    try:
        try:
            with warnings.catch_warnings():
                if not ranks.is_first:
                    warnings.simplefilter("ignore")  # the first rank says them
                yield
            ranks.gather()
        except (FaultElsewhere, RankLost):
            raise
        except Exception as error:
            if dist.is_initialized():  # not out of the group
                with contextlib.suppress(
                    RankLost, Terminated
                ):  # a rank that is gone need not hear it
                    ranks.gather(fault=str(error) or type(error).__name__)
            raise
    except FaultElsewhere:
        if wait:
            with contextlib.suppress(Terminated):
                time.sleep(_GRACE)
        raise
    except Terminated as error:
        raise RankLost(f"{error}; what is on the disk stands") from error


@contextlib.contextmanager
def _made() -> Iterator[Ranks]:
    """The process group that torchrun's environment describes. Each rank of a machine takes the GPU of its number there."""
    if missing := [
        name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ
    ]:
        raise UsageError(
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, but {', '.join(missing)} is not set; start with torchrun, or unset WORLD_SIZE"
        )
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if local < torch.cuda.device_count():
        torch.cuda.set_device(local)
    rank, size = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
    store = _store(
        os.getpid(),
        *(os.environ[name] for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")),
    )
    # keys of its own for each group: gloo would take the addresses of the one before for those of this one
    store = dist.PrefixStore(f"fltrain {store.add(f'groups of {rank}', 1)}", store)
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo",
        store=store,
        rank=rank,
        world_size=size,
        timeout=_PATIENCE,
    )
    try:
        with _terminable():
            yield Ranks(rank, size, store)
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


@functools.lru_cache(maxsize=1)
def _store(pid: int, *environment: str) -> dist.Store:
    """What all ranks see. One for all groups of a process: without torchrun it is on the first rank, and would end under those that join again."""
    store, _, _ = next(rendezvous("env://", timeout=_START))
    return store


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM is raised as Terminated, once, so that it can be said what stands. In the main thread alone: python has it no other way."""
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
