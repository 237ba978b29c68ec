"""Whether this process can have workers, and how many are worth it."""

import multiprocessing
import os
import sys

from niidpart.errors import UsageError


def require_worker_processes(device: str) -> None:
    """Raise a UsageError where worker processes cannot train on a device, or cannot be had here.

    device: "cpu", "cuda", ...
    """
    if device != "cpu":
        raise UsageError(
            f"engine processes is for the CPU, and the device is {device}; "
            "use --engine stacked or looped, or --device cpu"
        )
    reason = why_not_workers()
    if reason:
        raise UsageError(f"engine processes {reason}; use --engine looped")


def why_not_workers() -> str:
    """Return why this process can have no workers; "" if it can."""
    if "fork" not in multiprocessing.get_all_start_methods():
        return f"forks its workers, which {sys.platform} cannot"
    if multiprocessing.current_process().daemon:
        return "needs child processes, and a daemonic process, such as one of a Pool, has none"
    return ""


def count_cores() -> int:
    """Return the CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
