"""Where runs begin: anew, or from what their folders hold; and who may write there meanwhile."""

import contextlib
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import torch

import niidpart

from ..common import Execution
from ..engine.diverged import Diverged
from ..engine.jobs import Cell
from ..engine.ranks import Ranks, current_ranks
from ..environment import describe
from ..interface import State
from .cells import name_model
from .files import JSON, stage_folder
from .folder import RunFolder
from .grid import name_folder
from .requests import FORMAT, Request
from .loop import RunInProgress
from .states import make_initial_state, move_state
from .sweep_folder import lock_sweep, write_cells

Start = tuple[int, State]  # rounds that are done, and the state after them


class Beginning(Protocol):
    """Where some runs begin, and where they are written down."""

    def find_starts(self, cells: Sequence[Cell]) -> list[Start]:
        """Return where each run begins."""
        ...

    def open(
        self,
        requests: Sequence[Request],
        cells: Sequence[Cell],
        execution: Execution,
        starts: Sequence[Start],
    ) -> AbstractContextManager[list[RunInProgress]]:
        """Hold the folders while the runs train."""
        ...


@dataclass(frozen=True)
class NewRuns:
    """Runs that begin with round 1.

    out: the folder that will hold the run, or with `is_sweep` a folder for each run; None to write
    nothing.
    """

    out: str | Path | None
    is_sweep: bool = False

    def find_starts(self, cells: Sequence[Cell]) -> list[Start]:
        """Return the states of round 0."""
        return [(0, make_initial_state(cell)) for cell in cells]

    @contextlib.contextmanager
    def open(
        self,
        requests: Sequence[Request],
        cells: Sequence[Cell],
        execution: Execution,
        starts: Sequence[Start],
    ) -> Iterator[list[RunInProgress]]:
        """Create the folders, and hold them. They go again if the first round is refused."""
        ranks = current_ranks()
        out = next(iter(ranks.gather(self.out)))  # that of the first rank, which writes
        states = [state for _, state in starts]
        if out is None:
            ranks.gather()
            yield [
                RunInProgress(cell, None, state, [])
                for cell, state in zip(cells, states, strict=True)
            ]
            return
        path = Path(out)
        if ranks.is_first:
            self._create(path, requests, cells, execution, states)
        paths = [self._place(path, request) for request in requests]
        runs = [
            RunInProgress(cell, RunFolder(its), state, [])
            for cell, its, state in zip(cells, paths, states, strict=True)
        ]
        lock = lock_sweep if self.is_sweep else lock_run
        with hold(ranks, lock(path)), _withdraw_on_refusal(ranks, path):
            yield runs

    def _place(self, path: Path, request: Request) -> Path:
        return path / name_folder(request.numbers) if self.is_sweep else path

    def _create(
        self,
        path: Path,
        requests: Sequence[Request],
        cells: Sequence[Cell],
        execution: Execution,
        states: Sequence[State],
    ) -> None:
        """Write the folders of all runs, which appear at once."""
        each = list(zip(requests, cells, states, strict=True))
        if not self.is_sweep:
            for request, cell, state in each:
                _create_run_folder(path, request, cell, execution, state)
            return
        with stage_folder(path) as new:
            for request, cell, state in each:
                _create_run_folder(self._place(new, request), request, cell, execution, state)
            write_cells(new, {name_folder(r.numbers): r.numbers for r in requests})


@dataclass(frozen=True)
class ResumedRuns:
    """Runs that go on from their newest checkpoints. Whoever makes this holds the folders."""

    folders: Sequence[RunFolder]

    def find_starts(self, cells: Sequence[Cell]) -> list[Start]:
        """Return the newest states that runs have in common.

        The run that is furthest behind begins from its newest checkpoint, and so do all that have
        one of the same round; likewise the others among themselves.
        """
        newest = [folder.restore() for folder in self.folders]
        starts: dict[int, Start] = {}
        while len(starts) < len(newest):
            waiting = [i for i in range(len(newest)) if i not in starts]
            first = min(newest[i][0] for i in waiting)
            for i in waiting:
                done, state = newest[i]
                found = state if done == first else self.folders[i].restore_at(first)
                if found is not None:
                    device = cells[i].data.train.y.device
                    starts[i] = first, move_state(found, device)
        return [starts[i] for i in range(len(newest))]

    @contextlib.contextmanager
    def open(
        self,
        requests: Sequence[Request],
        cells: Sequence[Cell],
        execution: Execution,
        starts: Sequence[Start],
    ) -> Iterator[list[RunInProgress]]:
        """Cut off what the folders hold of later rounds."""
        ranks = current_ranks()
        if ranks.is_first:
            for folder, (done, _) in zip(self.folders, starts, strict=True):
                folder.cut(done)
                folder.clean()
        ranks.gather()
        _warn_of_another_machine(self.folders, execution)
        yield [
            RunInProgress(cell, folder, state, folder.history)
            for cell, folder, (_, state) in zip(cells, self.folders, starts, strict=True)
        ]


@contextlib.contextmanager
def hold(ranks: Ranks, lock: AbstractContextManager[None]) -> Iterator[None]:
    """Have the first of the ranks hold a lock. All ranks go on from here, or none."""
    with lock if ranks.is_first else contextlib.nullcontext():
        ranks.gather()
        yield


def lock_run(path: Path) -> AbstractContextManager[None]:
    """Lock a run for the one process that trains it."""
    return RunFolder(path).lock()


@contextlib.contextmanager
def _withdraw_on_refusal(ranks: Ranks, out: Path) -> Iterator[None]:
    """Remove the new folder where what was asked for is refused in the first round.

    Nothing has been trained, and the name is free again.
    """
    try:
        yield
    except Diverged:
        raise
    except ValueError:
        has_rounds = any(log.stat().st_size for log in out.rglob("metrics.jsonl"))
        if ranks.is_first and not has_rounds:
            shutil.rmtree(out)
        raise


def _create_run_folder(
    path: Path, request: Request, cell: Cell, execution: Execution, state: State
) -> None:
    """Write the folder of a run before its first round."""
    algorithm, split = request.algorithm, request.split
    root = split.root
    if request.data_root:
        root = str(Path(request.data_root).resolve())
    config: JSON = {
        "format": FORMAT,
        "algorithm": {"name": algorithm.name, "spec": algorithm.spec, "options": algorithm.options},
        "model": name_model(request, cell.data.shape),
        "parameters": sum(p.numel() for p in cell.task.module.parameters()),
        "preset": request.preset,
        "split": split.digest,
        "data_root": root,
        "settings": asdict(request.settings),
        "execution": asdict(execution),
    }
    environment = describe(torch.device(execution.device), execution.threads)
    RunFolder.create(path, config, environment, niidpart.to_bytes(split), state)


def _warn_of_another_machine(folders: Sequence[RunFolder], execution: Execution) -> None:
    """Warn where runs were started on another machine or with other versions."""
    here = describe(torch.device(execution.device), execution.threads)
    changes: dict[str, Path] = {}
    for folder in folders:
        there = folder.environment
        changed = [name for name, value in here.items() if there.get(name) != value]
        differ = [f"{name} {there.get(name)} -> {here[name]}" for name in changed]
        if differ:
            changes.setdefault(", ".join(differ), folder.path)
    for change, path in changes.items():
        warnings.warn(
            f"{path} was started elsewhere ({change}); results may differ in the last bits",
            stacklevel=3,
        )
