"""Which executor runs where the settings leave it open, what cannot run here, and the line that says so before the first round.

The rule looks at facts and never at a clock: the same command on the same machine picks the same executor, so its result has the same bits.
It never picks `native`, whose bits differ in the last places from torch's and which needs a compiler; `told` says where that could run.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch

from niidpart.errors import UsageError

from ..interface import State
from .batches import count_steps
from .cost import Cost, cost, footprint
from .jobs import Cell
from .native import can_train_natively, count_threads
from .processes import count_cores, why_not_workers
from .ranks import current_ranks
from .stacked.convolution import BEST
from .stacked.memory import memory_budget
from .stacked.stackable import why_not_stackable

STEP, RATE = (
    4e-4,
    2e10,
)  # one core: seconds of a step beside its arithmetic, and operations a second (measured: torch 2.13, Zen 5)
PAYS = 0.25  # seconds of a round on one core, from which on workers are worth their start and their messages
FILLS = 2e10  # operations of a step that keep a GPU busy by themselves; an estimate: 20 GFLOP take about as long as the step's launches


class Facts(NamedTuple):
    """All that the rule knows. cores: that this process may use; fork: whether it can have workers; ranks: processes that share the run (torchrun);
    threads, workers: asked for, None if not; jobs, steps: of a round, one model a party; flop: operations of a step; stackable: why the model cannot
    be stacked, "" if it can."""

    device: str
    cores: int
    fork: bool
    ranks: int
    threads: int | None
    workers: int | None
    compiled: bool
    jobs: int
    steps: int
    flop: float
    stackable: str

    @property
    def seconds(self) -> float:
        """Estimated, of a round's training on one core."""
        return self.steps * (STEP + self.flop / RATE)


def chosen(cell: Cell) -> Cell:
    """The cell with its engine and its number of threads settled, so that a run that is taken up again has the same.

    ValueError for an engine, or a precision, that cannot be had on this device.
    """
    settings = cell.settings
    _possible(cell)
    engine = pick(facts(cell)) if settings.engine == "auto" else settings.engine
    workers = settings.workers if engine in ("processes", "native") else None
    memory = settings.memory if engine == "stacked" else None
    threads = settings.threads or torch.get_num_threads()
    return replace(
        cell,
        settings=replace(settings, engine=engine, threads=threads, workers=workers, memory=memory),
    )


def pick(facts: Facts) -> str:
    """The name of the executor."""
    if facts.device == "cuda":
        return "looped" if against_stacking(facts) else "stacked"
    return "looped" if against_workers(facts) else "processes"


def against_workers(facts: Facts) -> str:
    """Why worker processes would not pay, "" if they would."""
    reasons = {
        "workers are for the CPU": facts.device != "cpu",
        "this process cannot fork workers": not facts.fork,
        "the ranks share the jobs": facts.ranks > 1,
        "one core": facts.cores < 2 and facts.workers is None,
        "one job a round": facts.jobs < 2,
        f"{facts.threads} threads were asked for": facts.threads not in (None, 1),
        "each worker would compile the model": facts.compiled,
        f"a round of about {facts.seconds:.1g} s is too short for workers": facts.seconds < PAYS
        and facts.workers is None,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def against_stacking(facts: Facts) -> str:
    """Why stacking would not pay, "" if it would."""
    reasons = {
        facts.stackable: bool(facts.stackable),
        "one job a round": facts.jobs < 2,
        "compiled models cannot be stacked": facts.compiled,
        f"a step of {facts.flop / 1e9:.3g} GFLOP fills the GPU alone": facts.flop >= FILLS,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def facts(cell: Cell, one: Cost | None = None) -> Facts:
    """Those of a cell on this machine. one: what an example costs, counted if not given."""
    data, settings = cell.data, cell.settings
    one, cuda = one or cost(cell.task, data), data.train.y.device.type == "cuda"
    jobs = max(1, math.floor(data.n_parties * settings.fraction + 1e-9))
    steps = sum(count_steps(data.train.size(p), settings) for p in range(data.n_parties))
    return Facts(
        device=data.train.y.device.type,
        cores=count_cores(),
        fork=_forks(),
        ranks=current_ranks().size,
        threads=settings.threads,
        workers=settings.workers,
        compiled=settings.compile,
        jobs=jobs,
        steps=round(steps * jobs / data.n_parties),
        flop=one.flop * settings.batch_size,
        stackable=why_not_stackable(cell, BEST["cuda"])
        if cuda
        else "",  # a stack on a CPU is made only where it is asked for, and refused there
    )


def _forks() -> bool:
    """Whether workers can be had: not where there is no fork, in a daemon, or once torch has been on a GPU (a fork leaves its threads behind)."""
    return not why_not_workers() and not torch.cuda.is_initialized()


def _possible(cell: Cell) -> None:
    """ValueError for what the settings ask for and this device has not."""
    settings, device = cell.settings, cell.data.train.y.device.type
    if settings.workers and settings.engine in ("looped", "stacked"):
        raise UsageError(
            f"workers is {settings.workers}, and engine {settings.engine} has none; leave --workers out, or use processes or native"
        )
    if settings.workers and settings.engine == "auto" and settings.threads not in (None, 1):
        raise UsageError(
            f"workers have one thread each, and threads is {settings.threads}; leave out --workers or --threads"
        )
    if settings.memory and settings.engine not in ("auto", "stacked"):
        raise UsageError(
            f"memory is for engine stacked, the engine is {settings.engine}; leave --memory out"
        )
    if settings.engine == "graph" and not torch.cuda.is_available():
        raise UsageError(
            "engine graph needs CUDA, torch sees none here (and it is not in this version); use processes, native or stacked"
        )
    if settings.engine == "graph":
        raise UsageError(
            "engine graph is not in this version: CUDA graphs are written only where they can be run and measured; use stacked"
        )
    if settings.engine == "stacked" and settings.compile:
        raise UsageError(
            "engine stacked cannot take a model through torch.compile; leave --compile out, or use looped"
        )
    if settings.tf32 and device != "cuda":
        raise UsageError(
            f"tf32 is of CUDA devices, the device is {device}; leave --tf32 out, or use --device cuda"
        )


def told(cells: Sequence[Cell], states: Sequence[State], *, written: bool = False) -> str:
    """The line before the first round: which executor runs these cells, how, why, and the memory that all its processes take together.

    written: whether checkpoints are. On CUDA the memory is the device's. It is an estimate: `cost.footprint` says what it counts.
    """
    settings, one = cells[0].settings, cost(cells[0].task, cells[0].data)
    known = facts(cells[0], one)._replace(threads=None)
    if settings.engine == "processes" and (known.ranks > 1 or why_not_workers()):
        settings = replace(
            settings, engine="looped", threads=1
        )  # the ranks are the workers, or there is none but this process
    jobs = known.jobs * len(cells)
    runs = f"{len(cells)} runs, " if len(cells) > 1 else ""
    many = f"{runs}{jobs} job{'s' if jobs > 1 else ''} a round"
    of = {
        "processes": settings.workers or known.cores,
        "native": count_threads(settings),
        "stacked": jobs,
    }
    at_once = min(of.get(settings.engine, 1), jobs)
    room = (
        memory_budget(settings.memory, cells[0].data.train.y.device)
        if settings.engine == "stacked"
        else math.inf
    )
    how = {
        "processes": f"{at_once} worker{'s' if at_once > 1 else ''} of 1 thread ({known.cores} cores, {many})",
        "native": f"{at_once} thread{'s' if at_once > 1 else ''} of compiled code ({known.cores} cores, {many})",
        "looped": f"one job after another on {settings.threads} thread{'s' if settings.threads != 1 else ''} ({many}{_because(known)})",
        "stacked": f"jobs side by side ({many}, {one.flop * settings.batch_size / 1e9:.2g} GFLOP a step of each)",
    }.get(settings.engine, many)
    memory = footprint(cells, states, one, at_once, budget=room, written=written)
    return f"engine {settings.engine}: {how}, about {memory / 1e9:.2g} GB{_faster(cells)}"


def _faster(cells: Sequence[Cell]) -> str:
    """That compiled code could train these cells, where torch does on a CPU; "" where it could not."""
    could = cells[0].settings.engine in ("looped", "processes") and all(
        can_train_natively(cell) for cell in cells
    )
    return (
        "; --engine native runs this model in compiled code, several times faster" if could else ""
    )


def _because(known: Facts) -> str:
    reason = against_stacking(known) if known.device == "cuda" else against_workers(known)
    return (
        f"; workers would not help: {reason}"
        if reason and known.device == "cpu"
        else f"; {reason}"
        if reason
        else ""
    )
