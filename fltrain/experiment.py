"""`run` and `resume`: from a split file and an algorithm to a trained state, round by round."""

import contextlib
import copy
import json
import warnings
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

import niidpart
from niidpart.data import Data
from niidpart.hub import opened

from . import models, tree
from .algorithms import build
from .data import open_for
from .environment import describe
from .interface import Algorithm, State
from .prepare import as_needed, device_of, initial, moved, named_module, not_options, prepare, preset_values, shape_of
from .rounds import OnProgress, Rounds, Running
from .settings import Settings
from .store import JSON, RunError, RunFolder
from .task import ModelTask

_FORMAT = 1  # of config.json and the checkpoints


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run. history: the metrics of each round; folder: where it lies, None if it was kept in memory."""

    history: list[JSON]
    state: State
    algorithm: Algorithm
    task: ModelTask
    folder: Path | None

    def model(self, party: int | None = None, *, personal: bool = False) -> nn.Module:
        """A module of its own with the weights that are served, in eval mode; personal: with the party's own (Ditto, pFedMe).

        party: which, needed where parties have models of their own. ValueError where it is missing or there is no such party.
        """
        if personal and self.algorithm.personal is None:
            raise ValueError(f"{self.algorithm.name} trains no personal models beside those that it serves; leave out personal=True")
        served = self.algorithm.personal(self.state) if personal and self.algorithm.personal else self.algorithm.serve(self.state)
        n = len(served.which)
        if n > 1 and (party is None or not 0 <= party < n):
            raise ValueError(f"{self.algorithm.name} has a model for each of {n} parties; say which, model(party) with 0..{n - 1}, not {party}")
        which = int(served.which[party if n > 1 and party is not None else 0])
        module = copy.deepcopy(self.task.module)
        own = dict(module.named_parameters()) | dict(module.named_buffers())
        with torch.no_grad():
            for name, value in (tree.index(served.models, which) | tree.index(served.buffers, which)).items():
                own[name].copy_(value)
        return module.eval()


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
    split = split if isinstance(split, niidpart.FederatedSplit) else opened(split)
    named = preset_values(preset, split, algorithm, model)
    algorithm = build(algorithm, **named.options) if isinstance(algorithm, str) else algorithm
    not_options(algorithm, settings)
    chosen = as_needed(Settings.of(named.settings | settings), algorithm, settings)
    chosen = replace(chosen, device=device_of(chosen).type, threads=chosen.threads or torch.get_num_threads())  # so that resuming is the same
    data = open_for(split, data, data_root)
    model = model or named.model or algorithm.model
    spec = "" if isinstance(model, nn.Module) else models.MODELS.absolute(model or models.default(split.source.name, shape_of(data)))
    module = copy.deepcopy(model) if isinstance(model, nn.Module) else named_module(spec, data, chosen)
    cell = prepare(split, data, algorithm, module, chosen)
    state = initial(cell)
    folder = None
    if out is not None:
        config = {
            "format": _FORMAT,
            "algorithm": {"name": algorithm.name, "spec": algorithm.spec, "options": algorithm.options},
            "model": spec,
            "parameters": sum(p.numel() for p in cell.task.module.parameters()),
            "preset": preset,
            "split": split.digest,
            "data_root": str(Path(data_root).resolve()) if data_root else split.root,
            "settings": asdict(cell.settings),
        }
        folder = RunFolder.create(out, config, describe(device_of(chosen), chosen.threads), niidpart.to_bytes(split), state)
    with folder.locked() if folder else contextlib.nullcontext():
        return finished(Running(cell, folder, state, []), progress)


def finished(running: Running, progress: OnProgress) -> Run:
    """The run after all its rounds. Diverged if training left the finite numbers."""
    Rounds([running], progress).train()
    if running.over:
        raise running.over
    cell = running.cell
    return Run(running.history, running.state, cell.algorithm, cell.task, running.folder.path if running.folder else None)


def resume(
    folder: str | Path,
    data: Data | None = None,
    *,
    algorithm: Algorithm | None = None,
    model: nn.Module | None = None,
    data_root: str | Path | None = None,
    trust: bool = False,
    progress: OnProgress = lambda _: None,
) -> Run:
    """Goes on with a run that was stopped or killed, to the same end as if it had not been.

    algorithm, model: needed only where the run was started from python with an object that has no name.
    trust: run the code outside fltrain (`file.py:function`) that the folder names as algorithm or model. Not for a stranger's folder.
    """
    opened = RunFolder.opened(folder)
    with opened.locked():
        return _resume(opened, data, algorithm, model, data_root, trust, progress)


def _resume(
    opened: RunFolder,
    data: Data | None,
    algorithm: Algorithm | None,
    model: nn.Module | None,
    data_root: str | Path | None,
    trust: bool,
    progress: OnProgress,
) -> Run:
    config, folder = opened.config, opened.path
    for spec in (config["algorithm"]["spec"], config["model"]):
        if ":" in spec and not trust:
            raise RunError(f"{folder} names code outside fltrain, {spec}; if it is yours, resume with --trust (trust=True)")
    if config.get("format") != _FORMAT:
        raise RunError(f"{folder} has the format {config.get('format')}, this fltrain reads {_FORMAT}; resume it with the version that wrote it")
    settings = Settings.of(config["settings"])
    named = config["algorithm"]
    if algorithm is None:
        if not named["spec"]:
            raise RunError(
                f"{folder} was started with an algorithm that has no name ({named['name']}); fltrain.resume(folder, algorithm=...) takes it"
            )
        algorithm = build(named["spec"], **named["options"])
    if (algorithm.spec, json.loads(json.dumps(algorithm.options))) != (named["spec"], named["options"]):  # a tuple is a list in JSON
        raise RunError(f"{folder} was started with {named['spec'] or named['name']} {named['options']}, not {algorithm.spec} {algorithm.options}")
    split = niidpart.read(opened.path / "split.h5")
    if split.digest != config["split"]:
        raise RunError(f"{opened.path / 'split.h5'} is the split {split.digest[:12]}..., the run was started on {config['split'][:12]}...")
    data = open_for(split, data, data_root or config["data_root"])
    if model is None and not config["model"]:
        raise RunError(f"{folder} was started with a module that has no name; fltrain.resume(folder, model=...) takes it")
    module = named_module(config["model"], data, settings) if model is None else copy.deepcopy(model)
    cell = prepare(split, data, algorithm, module, settings)
    done, state = opened.restore()
    opened.cut(done)
    opened.clean()
    here, there = describe(device_of(settings), settings.threads), opened.environment
    if differ := [f"{k} {there.get(k)} -> {v}" for k, v in here.items() if there.get(k) != v]:
        warnings.warn(f"{folder} was started elsewhere ({', '.join(differ)}); results may differ in the last bits", stacklevel=3)
    return finished(Running(cell, opened, moved(state, device_of(settings)), opened.history), progress)
