"""`run` and `resume`: from a split file and an algorithm to a trained state, round by round."""

import contextlib
import copy
import json
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

import niidpart
from niidpart.data import Data
from niidpart.errors import UsageError
from niidpart.hub.fetching import read_local_or_published

from .. import models, tree
from ..algorithms import build
from ..common import Common, Execution
from ..engine.auto import choose_execution
from ..engine.diverged import Diverged
from ..engine.jobs import Cell
from ..engine.processes import require_worker_processes
from ..engine.ranks import Ranks, current_ranks, join_ranks, require_agreement, require_no_workers
from ..environment import describe
from ..inputs.federated import Federated, open_split_data
from ..interface import Algorithm, State
from ..settings import Settings
from ..tasks.model_task import ModelTask
from .cells import (
    as_needed,
    device_of,
    initial,
    moved,
    named_module,
    not_options,
    prepare,
    preset_values,
    shape_of,
)
from .folder import JSON, RunError, RunFolder
from .rounds import OnProgress, Rounds, Running

_FORMAT = 1  # of config.json and the checkpoints


@dataclass(frozen=True, eq=False)
class Asked:
    """A run as it was asked for, all names looked up. model: None for the papers' model of such data."""

    split: niidpart.FederatedSplit
    algorithm: Algorithm
    model: nn.Module | str | None
    preset: str | None
    data_root: str | Path | None
    settings: Settings


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run. history: the metrics of each round; folder: where it lies, None if it was kept in memory.

    cell: of a sweep, the numbers by which this run differs from the others (`mu`, `seed`, ...; `split`: the name of its split), else empty.
    diverged: of a sweep, the error that ended this run before its last round, else None; history and state are those before it.
    """

    history: list[JSON]
    state: State
    algorithm: Algorithm
    task: ModelTask
    folder: Path | None
    cell: dict[str, Any] = field(default_factory=dict)
    diverged: Diverged | None = None

    def __repr__(self) -> str:
        numbers = "".join(f", {k}={v}" for k, v in self.cell.items())
        reached = [m["test_accuracy"] for m in self.history if m.get("test_accuracy") is not None]
        accuracy = f", test accuracy {100 * reached[-1]:.2f} %" if reached else ""
        return f"Run({self.algorithm.name}{numbers}, {len(self.history)} rounds{accuracy}{f', {self.folder}' if self.folder else ''})"

    def model(self, party: int | None = None, *, personal: bool = False) -> nn.Module:
        """A module of its own with the weights that are served, in eval mode; personal: with the party's own (Ditto, pFedMe).

        party: which, needed where parties have models of their own. ValueError where it is missing or there is no such party.
        """
        if personal and self.algorithm.personal is None:
            raise UsageError(
                f"{self.algorithm.name} trains no personal models beside those that it serves; leave out personal=True"
            )
        served = (
            self.algorithm.personal(self.state, self.algorithm.hyper)
            if personal and self.algorithm.personal
            else self.algorithm.serve(self.state, self.algorithm.hyper)
        )
        n = len(served.which)
        if n > 1 and (party is None or not 0 <= party < n):
            raise UsageError(
                f"{self.algorithm.name} has a model for each of {n} parties; say which, model(party) with 0..{n - 1}, not {party}"
            )
        which = int(served.which[party if n > 1 and party is not None else 0])
        module = copy.deepcopy(self.task.module)
        own = dict(module.named_parameters()) | dict(module.named_buffers())
        with torch.no_grad():
            for name, value in (
                tree.index(served.models, which) | tree.index(served.buffers, which)
            ).items():
                own[name].copy_(value)
        return module.eval()


@join_ranks()
def run(
    split: str | Path | niidpart.FederatedSplit,
    data: Data | None = None,
    *,
    algorithm: Algorithm | str = "fedavg",
    model: nn.Module | str | None = None,
    preset: str | None = None,
    data_root: str | Path | None = None,
    out: str | Path | None = None,
    progress: OnProgress = lambda _: None,
    **settings: Any,
) -> Run:
    """Trains `algorithm` on a split.

    split: a split file, `hub:USER/NAME[@REV]` for a published one, or a split in memory. data: its data set; None to read it from `data_root`,
    or from where the file says it is.
    model: a name, `file.py:function`, a module, or None for the papers' model of such data. preset: the setting of a paper (`fltrain presets`),
    for all that is not given here; its options of the algorithm count where that is given by name. out: the run folder, None to write nothing.
    settings: the fields of `Settings` (rounds, local_epochs, batch_size, lr, ...). ValueError if the data is not that of the split.
    """
    split = split if isinstance(split, niidpart.FederatedSplit) else read_local_or_published(split)
    asked = ask(split, algorithm, {}, model, preset, data_root, settings)
    ranks = current_ranks()
    require_no_workers(ranks, asked.settings.engine)
    cell, spec = made(asked, open_split_data(split, data, data_root))
    common = Common.of({"": asked.settings})
    execution = choose_execution([cell], common, asked.settings.device)
    state = initial(cell)
    require_agreement(ranks, split.digest, [cell], [state], execution)
    out = ranks.gather(out)[0]  # that of the first rank, which writes
    folder = (
        None
        if out is None
        else written(out, asked, cell, spec, state, execution)
        if ranks.is_first
        else RunFolder(Path(out))
    )
    with kept(ranks, folder.locked() if folder else None), only_if_it_starts(ranks, out):
        return finished(Running(cell, folder, state, []), progress, common, execution)


def ask(
    split: niidpart.FederatedSplit,
    algorithm: Algorithm | str,
    options: dict[str, Any],
    model: nn.Module | str | None,
    preset: str | None,
    data_root: str | Path | None,
    settings: dict[str, Any],
) -> Asked:
    """All that was asked for, a preset's values and the defaults in their places. options: of the algorithm, where that is given by name."""
    named = preset_values(preset, split, algorithm, model)
    algorithm = (
        build(algorithm, **named.options | options) if isinstance(algorithm, str) else algorithm
    )
    not_options(algorithm, settings)
    chosen = as_needed(Settings.of(named.settings | settings), algorithm, settings)
    chosen = replace(
        chosen, device=device_of(chosen).type
    )  # so that resuming is the same; `prepare` settles engine and threads
    if chosen.engine == "processes":
        require_worker_processes(
            chosen.device
        )  # here, since a run that had workers goes on without them
    return Asked(
        split, algorithm, model or named.model or algorithm.model, preset, data_root, chosen
    )


def made(asked: Asked, data: Data, held: Federated | None = None) -> tuple[Cell, str]:
    """(cell, name of its model, "" for a module without one). held: as in `prepare`."""
    model, settings = asked.model, asked.settings
    if not isinstance(model, nn.Module | str | None):
        raise UsageError(
            f"model is {model!r}; give a name, 'file.py:function', a torch.nn.Module, or None for the papers' model of such data"
        )
    spec = (
        ""
        if isinstance(model, nn.Module)
        else models.MODELS.resolve(model or models.default(asked.split.source.name, shape_of(data)))
    )
    module = (
        copy.deepcopy(model) if isinstance(model, nn.Module) else named_module(spec, data, settings)
    )
    return prepare(asked.split, data, asked.algorithm, module, settings, held), spec


def written(
    path: str | Path, asked: Asked, cell: Cell, spec: str, state: State, execution: Execution
) -> RunFolder:
    """The folder of a run before its first round."""
    algorithm, split, settings = (
        asked.algorithm,
        asked.split,
        replace(cell.settings, **asdict(execution)),
    )
    config = {
        "format": _FORMAT,
        "algorithm": {"name": algorithm.name, "spec": algorithm.spec, "options": algorithm.options},
        "model": spec,
        "parameters": sum(p.numel() for p in cell.task.module.parameters()),
        "preset": asked.preset,
        "split": split.digest,
        "data_root": str(Path(asked.data_root).resolve()) if asked.data_root else split.root,
        "settings": asdict(settings),
    }
    return RunFolder.create(
        path,
        config,
        describe(device_of(settings), settings.threads),
        niidpart.to_bytes(split),
        state,
    )


@contextlib.contextmanager
def kept(ranks: Ranks, lock: contextlib.AbstractContextManager[None] | None) -> Iterator[None]:
    """What is written to, locked by the first of the ranks that train. All ranks go on from here, or none."""
    with lock if lock is not None and ranks.is_first else contextlib.nullcontext():
        ranks.gather()
        yield


@contextlib.contextmanager
def only_if_it_starts(ranks: Ranks, out: str | Path | None) -> Iterator[None]:
    """The new folder `out` goes where what was asked for is refused in the first round: nothing has been trained, and the name is free again."""
    try:
        yield
    except Diverged:
        raise
    except ValueError:
        if (
            ranks.is_first
            and out is not None
            and not any(log.stat().st_size for log in Path(out).rglob("metrics.jsonl"))
        ):
            shutil.rmtree(out)
        raise


def finished(running: Running, progress: OnProgress, common: Common, execution: Execution) -> Run:
    """The run after all its rounds. Diverged if training left the finite numbers."""
    Rounds([running], progress, common, execution).train()
    if running.over:
        raise running.over
    return outcome(running, {})


def outcome(running: Running, numbers: dict[str, Any]) -> Run:
    """What a run has come to. numbers: those by which it differs from the others of its sweep."""
    cell, folder = running.cell, running.folder
    return Run(
        running.history,
        running.state,
        cell.algorithm,
        cell.task,
        folder.path if folder else None,
        numbers,
        running.over,
    )


@join_ranks()
def resume(
    folder: str | Path,
    data: Data | None = None,
    *,
    algorithm: Algorithm | None = None,
    model: nn.Module | None = None,
    data_root: str | Path | None = None,
    trust: bool = False,
    workers: int | None = None,
    progress: OnProgress = lambda _: None,
) -> Run:
    """Goes on with a run that was stopped or killed, to the same end as if it had not been.

    algorithm, model: needed only where the run was started from python with an object that has no name.
    trust: run the code outside fltrain (`file.py:function`) that the folder names as algorithm or model. Not for a stranger's folder.
    workers: so many worker processes or native threads from here on, instead of those that the run was started with; no result depends on them.
    """
    opened = RunFolder.opened(folder)
    ranks = current_ranks()
    with kept(ranks, opened.locked()):
        asked = recorded(opened, algorithm, model, data_root, trust, workers)
        cell, _ = made(asked, open_split_data(asked.split, data, asked.data_root))
        done, state = opened.restore()
        common = Common.of({"": asked.settings})
        execution = choose_execution([cell], common, asked.settings.device)
        require_agreement(ranks, asked.split.digest, [cell], [state], execution, [done])
        running = taken_up(opened, cell, done, state)
        tell_elsewhere(opened, cell.settings)
        return finished(running, progress, common, execution)


def recorded(
    folder: RunFolder,
    algorithm: Algorithm | None,
    model: nn.Module | None,
    data_root: str | Path | None,
    trust: bool,
    workers: int | None,
) -> Asked:
    """What the run in a folder was asked for. RunError where that cannot be had again, or is not what is handed over. workers: others, None for
    those that it has."""
    config, path = folder.config, folder.path
    for spec in (config["algorithm"]["spec"], config["model"]):
        if ":" in spec and not trust:
            raise RunError(
                f"{path} names code outside fltrain, {spec}; if it is yours, resume with --trust (trust=True)"
            )
    if config.get("format") != _FORMAT:
        raise RunError(
            f"{path} has the format {config.get('format')}, this fltrain reads {_FORMAT}; resume it with the version that wrote it"
        )
    settings = Settings.of(config["settings"] | ({} if workers is None else {"workers": workers}))
    algorithm = _same_algorithm(path, config["algorithm"], algorithm)
    split = niidpart.read(path / "split.h5")
    if split.digest != config["split"]:
        raise RunError(
            f"{path / 'split.h5'} is the split {split.digest[:12]}..., the run was started on {config['split'][:12]}..."
        )
    if model is None and not config["model"]:
        raise RunError(
            f"{path} was started with a module that has no name; fltrain.resume(folder, model=...) takes it"
        )
    root = data_root or config["data_root"]
    return Asked(
        split,
        algorithm,
        config["model"] if model is None else model,
        config.get("preset"),
        root,
        settings,
    )


def _same_algorithm(path: Path, named: JSON, algorithm: Algorithm | None) -> Algorithm:
    """The algorithm that a configuration names; RunError where another one is handed over."""
    if algorithm is None:
        if not named["spec"]:
            raise RunError(
                f"{path} was started with an algorithm that has no name ({named['name']}); fltrain.resume(folder, algorithm=...) takes it"
            )
        algorithm = build(named["spec"], **named["options"])
    if (algorithm.spec, json.loads(json.dumps(algorithm.options))) != (
        named["spec"],
        named["options"],
    ):  # a tuple is a list in JSON
        raise RunError(
            f"{path} was started with {named['spec'] or named['name']} {named['options']}, not {algorithm.spec} {algorithm.options}"
        )
    return algorithm


def taken_up(folder: RunFolder, cell: Cell, done: int, state: State) -> Running:
    """The run as it was after round `done`; what its folder holds of later rounds goes."""
    if current_ranks().is_first:
        folder.cut(done)
        folder.clean()
    current_ranks().gather()
    return Running(cell, folder, moved(state, device_of(cell.settings)), folder.history)


def tell_elsewhere(folder: RunFolder, settings: Settings) -> None:
    """Warns where a run was started on another machine or with other versions."""
    here, there = describe(device_of(settings), settings.threads), folder.environment
    if differ := [f"{k} {there.get(k)} -> {v}" for k, v in here.items() if there.get(k) != v]:
        warnings.warn(
            f"{folder.path} was started elsewhere ({', '.join(differ)}); results may differ in the last bits",
            stacklevel=3,
        )
