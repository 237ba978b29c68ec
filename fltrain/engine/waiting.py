"""How OpenMP's threads wait between two steps: beside busy programs for a moment, then asleep.

Each operation of torch wakes its threads, which wait for the next one by spinning for milliseconds.
Where the processors are free that is fastest: to wake a sleeping thread takes longer than many an
operation. Beside other busy programs they spin away the time that the thread with work would need,
and a run takes many times as long (docs/benchmarks.md). The runtime reads its settings when it is
loaded, which may be long before fltrain is imported; what is here works at any time, and ends with
the round.
"""

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# Who sets one of them has chosen how threads wait.
_CHOICES = ("GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_WAIT_POLICY")
# Processors that other programs keep busy, from which on threads sleep.
_BUSY = 0.25


class RoundWaiting:
    """Chooses round by round how threads wait, by what other programs did meanwhile.

    In the first round nobody knows, and threads sleep: that is slower, but never many times.
    """

    def __init__(self) -> None:
        self._before: ProcessorTime | None = None

    @contextlib.contextmanager
    def for_round(self) -> Iterator[None]:
        """Let waiting threads sleep within, if that is due."""
        before, self._before = self._before, read_processor_time()
        others = None
        if before is not None and self._before is not None:
            others = self._before.count_others(before)
        if others is not None and others < _BUSY:
            yield
        else:
            with let_threads_sleep():
                yield


class ProcessorTime(NamedTuple):
    """Seconds so far: of all processors, of those the busy ones, and this process's own."""

    whole: float
    busy: float
    own: float

    def count_others(self, before: "ProcessorTime") -> float | None:
        """Return how many processors others kept busy since then; None where no time has passed."""
        whole = self.whole - before.whole
        if whole <= 0:
            return None
        others = (self.busy - before.busy) - (self.own - before.own)
        return others * (os.cpu_count() or 1) / whole


def read_processor_time() -> ProcessorTime | None:
    """Return the times up to now; None where the system does not tell, as Linux does."""
    try:
        words = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    except OSError:
        return None
    # user, nice, system, idle, iowait, irq, softirq, steal; what follows is in user already
    ticks = [int(word) for word in words[1:9]]
    idle = ticks[3] + ticks[4]
    second = os.sysconf("SC_CLK_TCK")
    own = os.times()
    whole = sum(ticks) / second
    return ProcessorTime(whole, whole - idle / second, own.user + own.system)


@contextlib.contextmanager
def let_threads_sleep() -> Iterator[None]:
    """While the block runs, let waiting threads of torch go to sleep after a moment.

    No result changes. Nothing is done where the environment says how threads wait, and for
    runtimes other than GNU's, LLVM's and Intel's.
    """
    runtime = ctypes.CDLL(None)  # what torch loads is found by its names, whoever loaded it first
    if any(name in os.environ for name in _CHOICES):
        yield
    elif hasattr(runtime, "kmp_set_blocktime"):
        before = runtime.kmp_get_blocktime()
        runtime.kmp_set_blocktime(0)
        try:
            yield
        finally:
            runtime.kmp_set_blocktime(before)
    elif hasattr(runtime, "GOMP_parallel"):
        with _park_team(runtime):
            yield
    else:
        yield


@contextlib.contextmanager
def _park_team(runtime: ctypes.CDLL) -> Iterator[None]:
    """While the block runs, keep a second team of threads, which sleeps.

    GNU's runtime lets threads spin for 100 turns, not 300,000, while it has more of them than there
    are processors; there is no other way to tell it once it is loaded.
    """
    parked, is_over = threading.Event(), threading.Event()
    nothing = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p)  # of NULL, in each thread

    def park() -> None:
        runtime.GOMP_parallel(nothing, None, runtime.omp_get_num_procs(), 0)
        parked.set()
        is_over.wait()  # the team lives as long as the thread that started it

    keeper = threading.Thread(target=park, name="fltrain waiting", daemon=True)
    keeper.start()
    parked.wait()
    try:
        yield
    finally:
        is_over.set()
        keeper.join()
