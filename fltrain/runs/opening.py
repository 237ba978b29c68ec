"""Runs before their first round: their folders are created, or cut to where they start, held."""

import contextlib
import secrets
import shutil
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
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
from ..environment import describe
from ..interface import State
from ..settings import SETTINGS, Settings
from .configuration import FORMAT, NEW_PARTIES
from .elsewhere import describe_changes
from .extending import extend_runs
from .folder import RUN_ID, RunFolder
from .in_progress import RunInProgress
from .modules import name_model
from .own_files import OWN_CODE, digest_own_code, list_specs
from .requests import Request
from .starting import StartingPoint
from .stopping import has_reached_end
from .sweep_folder import lock_sweep, write_cells
from .writer import RunWriter

_CAME_LATER = ("new_parties", "checkpoint_share", "internals")  # settings


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


@contextlib.contextmanager
def open_runs(
    setup: Setup,
    resumed: Sequence[RunFolder] | None,
    out: str | Path | None,
    *,
    is_sweep: bool,
) -> Iterator[list[RunInProgress]]:
    """Yield each run before its first round here, with the folder that it is written into.

    resumed: folders that the caller holds, which are cut to where the runs start, and get the
    rounds that are asked for; None to create new ones in `out`, and hold them while the block
    trains.
    """
    if resumed is not None:
        _cut_folders(setup, resumed)
        settings = [request.settings for request in setup.requests]
        with hold(setup.ranks, extend_runs(resumed, settings)), open_writing_thread() as thread:
            yield _start_runs(setup, resumed, thread)
        return
    with (
        _create_folders(setup, out, is_sweep=is_sweep) as folders,
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
def _create_folders(
    setup: Setup, out: str | Path | None, *, is_sweep: bool
) -> Iterator[list[RunFolder | None]]:
    """Create the folders of new runs, and hold them while the block trains.

    out: the folder that will hold the run, or with `is_sweep` a folder for each run; None to write
    nothing. The folders are removed again if the first round is refused.
    """
    ranks = setup.ranks
    # That of the first rank, which writes: the others may have been given another, or none.
    out = ranks.gather(out)[0]
    if out is None:
        yield [None] * len(setup.cells)
        return
    path = Path(out)
    if ranks.is_first:
        _write_folders(path, setup, is_sweep)
    folders = [RunFolder(_place(path, request, is_sweep)) for request in setup.requests]
    lock = lock_sweep(path) if is_sweep else RunFolder(path).lock()
    with hold(ranks, lock), _withdraw_on_refusal(ranks, path):
        yield list(folders)


def _cut_folders(setup: Setup, folders: Sequence[RunFolder]) -> None:
    """Cut off what the folders hold of rounds after their starts."""
    if setup.ranks.is_first:
        each = zip(folders, setup.requests, setup.starts, strict=True)
        for folder, request, start in each:
            folder.cut(start.rounds_done)
            folder.clean(request.settings.keep)
    setup.ranks.wait_for_all()  # the others read what was cut
    _warn_of_another_machine(folders, setup.execution)


def _place(path: Path, request: Request, is_sweep: bool) -> Path:
    return path / request.name if is_sweep else path


def _write_folders(path: Path, setup: Setup, is_sweep: bool) -> None:
    """Write the folders of all runs, which appear at once."""
    requests, execution = setup.requests, setup.execution
    each = list(zip(requests, setup.cells, setup.starts, strict=True))
    if not is_sweep:
        for request, cell, start in each:
            _create_run_folder(
                path=path, request=request, cell=cell, execution=execution, state=start.state
            )
        return
    with stage_folder(path) as new:
        for request, cell, start in each:
            place = _place(new, request, is_sweep)
            _create_run_folder(
                path=place, request=request, cell=cell, execution=execution, state=start.state
            )
        write_cells(new, {request.name: request.numbers for request in requests})


@contextlib.contextmanager
def _withdraw_on_refusal(ranks: Ranks, out: Path) -> Iterator[None]:
    """Remove the new folder where the first round refuses what was asked for.

    Nothing has been trained, and the name is free again.
    """
    out = out.resolve()  # of a link to an empty folder: that folder, which is what was written
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
    path: Path,
    request: Request,
    cell: Cell,
    execution: Execution,
    state: State,
) -> None:
    """Write the folder of a run before its first round."""
    config = make_config(request, cell, execution)
    environment = describe(torch.device(execution.device), execution.threads)
    # What tells it from another run of the same configuration, wherever the folder is moved.
    environment[RUN_ID] = secrets.token_hex(8)
    RunFolder.create(path, config, environment, niidpart.to_bytes(request.split), state)


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
        "settings": _list_settings(request.settings),
        "execution": execution.describe(),
    }
    config |= request.objective.describe()
    if cell.data.new_parties is not None:
        config[NEW_PARTIES] = list(cell.data.new_parties.numbers)
    if request.weights is not None:
        config |= request.weights.describe()
    own_code = digest_own_code(list_specs(config))
    if own_code:
        config[OWN_CODE] = own_code
    return config


def _list_settings(settings: Settings) -> JSON:
    """Return the settings by name; those that came later only where they are asked for.

    So the folder of a run that does without has the bytes that it had before.
    """
    values = asdict(settings)
    for name in _CAME_LATER:
        if values[name] == SETTINGS[name].default:
            del values[name]
    return values


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
