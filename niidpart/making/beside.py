"""Work in a thread beside other work, where there are two processors and enough of it."""

import contextlib
import os
from collections.abc import Callable, Iterator
from threading import Thread

_LONG = 1 << 20  # rows from which on going over them is worth a thread


def start_beside(work: Callable[[], object], n_rows: int, name: str) -> Thread | None:
    """Start work on so many rows in a thread; None where it would not pay, or there is none."""
    if n_rows < _LONG or _count_processors() < 2:
        return None
    thread = Thread(target=work, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the system gives no more threads
        return None
    return thread


@contextlib.contextmanager
def do_beside(work: Callable[[], object], n_rows: int, name: str) -> Iterator[None]:
    """Do work on so many rows beside the block, where that pays; else it is left to be done."""

    def try_work() -> None:
        with contextlib.suppress(MemoryError):  # it is met again, where it can be told
            work()

    thread = start_beside(try_work, n_rows, name)
    try:
        yield
    finally:
        if thread is not None:
            thread.join()


def _count_processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
