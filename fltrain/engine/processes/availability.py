"""Whether this process can have workers, and how many are worth it."""

import contextlib
import multiprocessing
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar

import torch

from niidpart.errors import UsageError

from ..execution import Execution

_are_cores_left = ContextVar("are_cores_left", default=False)


@contextlib.contextmanager
def leave_cores() -> Iterator[None]:
    """Give new runs no workers that they did not ask for: other processes have the cores."""
    token = _are_cores_left.set(True)
    try:
        yield
    finally:
        _are_cores_left.reset(token)


def require_worker_processes(device: str, n_ranks: int = 1) -> None:
    """Raise a UsageError where worker processes cannot train on a device, or cannot be had here.

    device: "cpu", "cuda", ... n_ranks: those that share the run.
    """
    if device != "cpu":
        raise UsageError(
            f"engine processes is for the CPU, and the device is {device}; "
            "use --engine stacked or looped, or --device cpu"
        )
    reason = why_not_workers(n_ranks)
    if reason:
        raise UsageError(f"engine processes {reason}; use --engine looped")


def why_not_workers(n_ranks: int = 1) -> str:
    """Return why this process can have no workers, as it follows on the engine; "" if it can.

    n_ranks: those that share the run.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        return f"forks its workers, which {sys.platform} cannot"
    if multiprocessing.current_process().daemon:
        return "needs child processes, and a daemonic process, such as one of a Pool, has none"
    if n_ranks > 1:
        return f"is for one rank, and there are {n_ranks}: they are the processes"
    return ""


def has_lost_workers(execution: Execution, n_ranks: int) -> bool:
    """Return whether a run was started with workers, and is resumed where it cannot have them.

    One thread, or the ranks, then take their place, with the same bits. A new run that asks for
    workers there is refused.
    """
    return execution.engine == "processes" and why_not_workers(n_ranks) != ""


def can_fork() -> bool:
    """Return whether a new run may be given workers that it did not ask for.

    Not where the cores are left to others (`leave_cores`), and not once torch has been on a GPU:
    a fork leaves the threads of CUDA behind.
    """
    is_on_gpu = bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
    return not why_not_workers() and not is_on_gpu and not _are_cores_left.get()


def count_cores() -> int:
    """Return the CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
