"""Runs before their first round: their folders are created, or cut to where they start, held."""

import contextlib
import secrets
import shutil
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import torch

import niidpart
from niidpart.splits.recipe import JSON

from ..disk.beside import open_writing_thread
from ..disk.staging import stage_folder
from ..engine.diverged import Diverged
from ..engine.execution import Execution
from ..engine.jobs import Cell
from ..engine.ranks import Ranks
from ..environment import describe, find_commit
from ..interface import State
from .configuration import FORMAT, NEW_PARTIES, list_settings
from .elsewhere import describe_changes
from .extending import extend_runs
from .folder import COMMIT, RUN_ID, RunFolder
from .in_progress import RunInProgress
from .modules import name_model
from .own_files import OWN_CODE, digest_own_code, list_specs
from .party_models import describe_deal
from .requests import Request
from .starting import StartingPoint
from .stopping import has_reached_end
from .sweep_folder import lock_sweep, write_cells
from .writer import RunWriter


@dataclass(frozen=True, eq=False)
class Setup:
    """All that folders say of runs before their first round. requests, cells, starts: one a run."""

    requests: Sequence[Request]
    cells: Sequence[Cell]
    starts: Sequence[StartingPoint]
    execution: Execution
    ranks: Ranks


@contextlib.contextmanager
def hold(ranks: Ranks, lock: AbstractContextManager[None]) -> Iterator[None]:
    """Have the first of the ranks hold a lock. All ranks continue from here, or none does."""
    with lock if ranks.is_first else contextlib.nullcontext():
        ranks.wait_for_all()
        yield


@dataclass(frozen=True)
class NewFolders:
    """Where new runs are written: a path for each; () to write nothing.

    sweep: the folder that holds them all, which appears with all of them at once; None where each
    lies by itself.
    """

    paths: Sequence[Path] = ()
    sweep: Path | None = None

    @classmethod
    def of_one(cls, path: str | Path | None) -> "NewFolders":
        """Return that of a run; None to write nothing."""
        return cls() if path is None else cls((Path(path),))

    @classmethod
    def of_sweep(cls, path: str | Path | None, names: Sequence[str]) -> "NewFolders":
        """Return those of a sweep; None to write nothing. names: of its runs."""
        if path is None:
            return cls()
        return cls([Path(path) / name for name in names], Path(path))

    @property
    def tops(self) -> Sequence[Path]:
        """What appears beside what was there."""
        return self.paths if self.sweep is None else [self.sweep]


@contextlib.contextmanager
def open_runs(
    setup: Setup, resumed: Sequence[RunFolder] | None, new: NewFolders
) -> Iterator[list[RunInProgress]]:
    """Yield each run before its first round here, with the folder that it is written into.

    resumed: folders that the caller holds, which are cut to where the runs start, and get the
    rounds that are asked for; None to create new ones, and hold them while the block trains.
    """
    if resumed is not None:
        _cut_folders(setup, resumed)
        settings = [request.settings for request in setup.requests]
        with hold(setup.ranks, extend_runs(resumed, settings)), open_writing_thread() as thread:
            yield _start_runs(setup, resumed, thread)
        return
    with (
        _create_folders(setup, new) as folders,
        open_writing_thread() as thread,
    ):
        yield _start_runs(setup, folders, thread)


def _start_runs(
    setup: Setup, folders: Sequence[RunFolder | None], thread: ThreadPoolExecutor
) -> list[RunInProgress]:
    runs = []
    for cell, start, folder in zip(setup.cells, setup.starts, folders, strict=True):
        run = RunInProgress(cell, folder, start.state, history=[])
        if folder is not None:
            run.history = folder.history
            run.has_stopped = has_reached_end(run.cell.settings, run.history)
            if setup.ranks.is_first:
                keep = cell.settings.keep
                # What is wanted after certain rounds is there when they are shown.
                is_beside = cell.settings.checkpoint_every is None
                run.writer = RunWriter(
                    folder=folder,
                    state=start.state,
                    round=start.rounds_done,
                    keep=keep,
                    thread=thread if is_beside else None,
                )
        runs.append(run)
    return runs


@contextlib.contextmanager
def _create_folders(setup: Setup, new: NewFolders) -> Iterator[list[RunFolder | None]]:
    """Create the folders of new runs, and hold them while the block trains.

    They are removed again if the first round is refused.
    """
    ranks = setup.ranks
    # Those of the first rank, which writes: the others may have been given others, or none.
    new = ranks.gather(new)[0]
    if not new.paths:
        yield [None] * len(setup.cells)
        return
    if ranks.is_first:
        _write_folders(new, setup)
    folders = [RunFolder(path) for path in new.paths]
    lock = lock_runs(folders) if new.sweep is None else lock_sweep(new.sweep)
    with hold(ranks, lock), _withdraw_on_refusal(ranks, new.tops):
        yield list(folders)


@contextlib.contextmanager
def lock_runs(folders: Sequence[RunFolder]) -> Iterator[None]:
    """Lock run folders for the one process that trains them. RunError if another trains one."""
    with contextlib.ExitStack() as locks:
        for folder in folders:
            locks.enter_context(folder.lock())
        yield


def _cut_folders(setup: Setup, folders: Sequence[RunFolder]) -> None:
    """Cut off what the folders hold of rounds after their starts."""
    if setup.ranks.is_first:
        each = zip(folders, setup.requests, setup.starts, strict=True)
        for folder, request, start in each:
            folder.cut(start.rounds_done)
            folder.clean(request.settings.keep)
    setup.ranks.wait_for_all()  # the others read what was cut
    _warn_of_another_machine(folders, setup.execution)


def _write_folders(new: NewFolders, setup: Setup) -> None:
    """Write the folders of all runs; those of a sweep appear at once."""
    if new.sweep is None:
        _write_run_folders(new.paths, setup)
        return
    with stage_folder(new.sweep) as staged:
        _write_run_folders([staged / path.name for path in new.paths], setup)
        write_cells(staged, {request.name: request.numbers for request in setup.requests})


def _write_run_folders(paths: Sequence[Path], setup: Setup) -> None:
    split_files: dict[str, bytes] = {}
    each = zip(paths, setup.requests, setup.cells, setup.starts, strict=True)
    for path, request, cell, start in each:
        split = request.split
        if split.digest not in split_files:
            split_files[split.digest] = niidpart.to_bytes(split)
        _create_run_folder(
            path=path,
            config=make_config(request, cell, setup.execution),
            execution=setup.execution,
            split=split_files[split.digest],
            state=start.state,
        )


def _create_run_folder(
    path: Path, config: JSON, execution: Execution, split: bytes, state: State
) -> None:
    """Write the folder of a run before its first round."""
    environment = describe(torch.device(execution.device), execution.threads)
    # Of the start alone: a run goes on, and is trained again, at any commit with its last bits.
    environment[COMMIT] = find_commit()
    # What tells it from another run of the same configuration, wherever the folder is moved.
    environment[RUN_ID] = secrets.token_hex(8)
    RunFolder.create(path, config, environment, split, state)


@contextlib.contextmanager
def _withdraw_on_refusal(ranks: Ranks, paths: Sequence[Path]) -> Iterator[None]:
    """Remove the new folders where the first round refuses what was asked for.

    Nothing has been trained, and the names are free again.
    """
    # of a link to an empty folder: that folder, which is what was written
    written = [path.resolve() for path in paths]
    try:
        yield
    except Diverged:
        raise
    except ValueError:
        logs = [log for path in written for log in path.rglob("metrics.jsonl")]
        has_rounds = any(log.stat().st_size for log in logs)
        if ranks.is_first and not has_rounds:
            for path in written:
                shutil.rmtree(path)
        raise


def make_config(request: Request, cell: Cell, execution: Execution) -> JSON:
    """Return what config.json says of a run."""
    algorithm, split = request.algorithm, request.split
    root = split.root
    if request.data_root:
        root = str(Path(request.data_root).resolve())
    model = name_model(request, cell.data.shape)
    config: JSON = {
        "format": FORMAT,
        "algorithm": {"name": algorithm.name, "spec": algorithm.spec, "options": algorithm.options},
        "model": model,
        "parameters": sum(p.numel() for p in cell.task.module.parameters()),
        "preset": request.preset,
        "split": split.digest,
        "data_root": root,
        "settings": list_settings(request.settings),
        "execution": execution.describe(),
    }
    config |= request.objective.describe()
    if cell.data.new_parties is not None:
        config[NEW_PARTIES] = list(cell.data.new_parties.numbers)
    config |= describe_deal(model, split, request.settings)
    if request.weights is not None:
        config |= request.weights.describe()
    own_code = digest_own_code(list_specs(config))
    if own_code:
        config[OWN_CODE] = own_code
    return config


def _warn_of_another_machine(folders: Sequence[RunFolder], execution: Execution) -> None:
    """Warn where runs were started on another machine or with other versions."""
    changes: dict[str, Path] = {}
    for folder in folders:
        change = describe_changes(folder, execution)
        if change:
            changes.setdefault(change, folder.path)
    for change, path in changes.items():
        warnings.warn(
            f"{path} was started elsewhere ({change}); results may differ in the last bits",
            stacklevel=3,
        )
