"""What was asked for, all names looked up: of a new run, or of one that a folder holds."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

import niidpart
from niidpart.errors import UsageError
from niidpart.splits.recipe import JSON

from .. import presets
from ..algorithms import ALGORITHMS, build
from ..disk.plain_folder import RunError
from ..engine.processes import require_worker_processes
from ..engine.ranks import current_ranks
from ..interface import Algorithm
from ..libraries import is_own_code
from ..presets import ResolvedPreset
from ..settings import SETTINGS, Settings
from ..tasks.losses import Losses, OwnFunction, resolve_losses
from .extending import change_rounds
from .fitting import fit_settings
from .folder import RunFolder
from .grid import name_folder
from .held_out import require_drawn
from .home_parts import require_home_parts
from .idle_settings import mention_given_way
from .initial_weights import InitialWeights, restore_initial_weights
from .objective import AskedMetrics, Objective, restore_objective
from .own_files import list_specs, require_same_code


@dataclass(frozen=True, eq=False)
class Request:
    """A run as it was asked for, all names looked up.

    model: None for the papers' model of such data. device: cpu or cuda, found for the one that the
    settings ask for. weights: those to begin with, None for those that the seed draws. asked: the
    settings that were asked for by name. numbers: of a sweep, those by which this run differs from
    the others.
    """

    split: niidpart.FederatedSplit
    algorithm: Algorithm
    model: nn.Module | str | None
    preset: str | None
    data_root: str | Path | None
    settings: Settings
    device: str
    objective: Objective = field(default_factory=Objective)
    losses: Losses = field(default_factory=Losses)
    weights: InitialWeights | None = None
    asked: frozenset[str] = frozenset()
    numbers: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of the run among those of its sweep, and of its folder there."""
        return name_folder(self.numbers)


def resolve_request(
    split: niidpart.FederatedSplit,
    *,
    algorithm: Algorithm | str,
    model: nn.Module | str | None,
    preset: str | None,
    data_root: str | Path | None,
    settings: Mapping[str, Any],
    objective: Objective,
    weights: InitialWeights | None = None,
    options: Mapping[str, Any] | None = None,
    numbers: Mapping[str, Any] | None = None,
) -> Request:
    """Return the request of a new run, a preset's values and the defaults in their places.

    options: of the algorithm, where that is given by name.
    """
    _require_model(model)
    values = resolve_preset(preset, split, algorithm, model)
    if isinstance(algorithm, str):
        algorithm = build(algorithm, **values.options | dict(options or {}))
    _require_algorithm(algorithm)
    _refuse_options(algorithm, settings)
    together = Settings.of(values.settings | dict(settings))
    complete = fit_settings(together, algorithm, settings)
    mention_given_way(preset, together, complete, settings)
    require_home_parts(split, complete)
    device = _find_device(complete.device)
    # A run that had workers resumes without them, so this is asked of new runs alone.
    if complete.engine == "processes":
        require_worker_processes(device, current_ranks().size)
    return Request(
        split=split,
        algorithm=algorithm,
        model=model or values.model or algorithm.model,
        preset=preset,
        data_root=data_root,
        settings=complete,
        device=device,
        objective=objective,
        losses=resolve_losses(objective.loss, complete.label_smoothing),
        weights=weights,
        asked=frozenset(settings),
        numbers=dict(numbers or {}),
    )


def resolve_preset(
    preset: str | None,
    split: niidpart.FederatedSplit,
    algorithm: Algorithm | str,
    model: nn.Module | str | None,
) -> ResolvedPreset:
    """Return the preset's values for this split; nothing where none is asked for."""
    if preset is None:
        return ResolvedPreset(settings={}, model=None, options={}, values=(), grids=(), known=False)
    name = algorithm if isinstance(algorithm, str) else algorithm.spec
    model_name = model if isinstance(model, str) else None
    return presets.find(preset).on(split, name, model_name)


def _require_model(model: object) -> None:
    if not isinstance(model, nn.Module | str | None):
        raise UsageError(
            f"model is {model!r}; give a name, 'file.py:function', a torch.nn.Module, "
            "or None for the papers' model of such data"
        )


def _require_algorithm(algorithm: object) -> None:
    """Raise UsageError for what is no algorithm, such as a constructor that was not called."""
    if isinstance(algorithm, Algorithm):
        return
    if callable(algorithm):
        name = getattr(algorithm, "__name__", "it")
        raise UsageError(f"algorithm is the function {name}; call it: fltrain.algorithms.{name}()")
    raise UsageError(f"algorithm is {algorithm!r}; give a name, or an fltrain.Algorithm")


def _refuse_options(algorithm: Algorithm, asked: Mapping[str, Any]) -> None:
    """Raise UsageError where an algorithm's option is given as a setting."""
    for name in asked:
        if name in SETTINGS:
            continue
        owners = [owner for owner, option in ALGORITHMS.all_options() if option.name == name]
        if owners:
            like = algorithm.name if algorithm.name in owners else owners[0]
            raise UsageError(
                f"{name} is an option of {', '.join(owners)}, no setting; "
                f"give algorithm=fltrain.algorithms.{like}({name}=...)"
            )


def _find_device(asked: str) -> str:
    """Return cpu or cuda; UsageError where cuda is asked for and not there."""
    has_cuda = torch.cuda.is_available()
    if asked == "cuda" and not has_cuda:
        raise UsageError("device is cuda, and torch sees no CUDA device here; use --device cpu")
    if asked == "auto":
        return "cuda" if has_cuda else "cpu"
    return asked


def load_request(
    folder: RunFolder,
    *,
    algorithm: Algorithm | None,
    model: nn.Module | None,
    data_root: str | Path | None,
    trust: bool,
    workers: int | None = None,
    keep: str | None = None,
    loss: OwnFunction | None = None,
    metrics: AskedMetrics = (),
    rounds: int | None = None,
    numbers: Mapping[str, Any] | None = None,
) -> Request:
    """Return the request of the run in a folder. It asks for the execution that was chosen then.

    workers, keep, rounds: others than then; None for the same. RunError where something cannot be
    had again, or is not what is handed over; UsageError where a file of the user's own has changed.
    """
    _require_model(model)
    config, path = folder.config, folder.path
    _require_trust(path, config, trust)
    # Before any of it is loaded. A model that is handed over takes the place of its file.
    used = list_specs(config if model is None else config | {"model": ""})
    require_same_code(path, config, used)
    objective = restore_objective(path, config, loss, metrics)
    settings = _restore_settings(path, config, workers)
    if keep is not None:
        settings = replace(settings, keep=keep)
    if rounds is not None:
        settings = change_rounds(folder, settings, rounds)
    algorithm = _rebuild_algorithm(path, config["algorithm"], algorithm)
    split = require_drawn(config, _read_split(folder))
    if model is None and not config["model"]:
        raise RunError(
            f"{path} was started with a module that has no name; "
            "fltrain.resume(folder, model=...) takes it"
        )
    return Request(
        split=split,
        algorithm=algorithm,
        model=config["model"] if model is None else model,
        preset=config.get("preset"),
        data_root=data_root or config["data_root"],
        settings=settings,
        device=_find_device(settings.device),
        objective=objective,
        losses=resolve_losses(objective.loss, settings.label_smoothing),
        weights=restore_initial_weights(config),
        numbers=dict(numbers or {}),
    )


def _read_split(folder: RunFolder) -> niidpart.FederatedSplit:
    """Return the run's copy of its split. RunError where it is damaged, or another split."""
    file = folder.split_file
    stated = f"{folder.config['split'][:12]}..."
    advice = f"copy the file of that split over {file} (niidpart show FILE says its digest)"
    try:
        split = niidpart.read(file)
    except niidpart.SplitError as error:
        raise RunError(f"{error}. The run was started on the split {stated}; {advice}") from error
    if split.digest != folder.config["split"]:
        found = f"{file} is the split {split.digest[:12]}..."
        raise RunError(f"{found}, the run was started on {stated}; {advice}")
    return split


def _restore_settings(path: Path, config: JSON, workers: int | None) -> Settings:
    """Return the settings of a run folder, with other workers where they are given.

    UsageError where this version does not take them: earlier ones had no bound of threads and
    workers. A bound in its place would be another number of threads, and other last bits.
    """
    # What was chosen takes the place of what was asked for: another choice, on another machine,
    # would change the last bits. Folders of format 1 have it among the settings.
    stored = config["settings"] | config.get("execution", {})
    if workers is not None:
        stored["workers"] = None
    try:
        restored = Settings.of(stored)
    except UsageError as error:
        raise UsageError(
            f"{path / 'config.json'}: {error}. Resume with --workers (workers=...) for other "
            "workers, or with the version that wrote it"
        ) from error
    return restored if workers is None else replace(restored, workers=workers)


def _require_trust(path: Path, config: JSON, trust: bool) -> None:
    """Raise RunError where a folder names code outside fltrain, and may not."""
    specs = list_specs(config)
    for spec in specs:
        if is_own_code(spec) and not trust:
            raise RunError(
                f"{path} names code outside fltrain, {spec}; "
                "if it is yours, allow it with --trust (trust=True)"
            )


def _fill_in_later_options(named: JSON) -> JSON:
    """Return the options that a configuration states, and the defaults of those that came later.

    Those change no bit of a run (docs/design.md), so a folder of an earlier version goes on.
    """
    stated: JSON = named["options"]
    if named["spec"] not in ALGORITHMS.names():
        return stated
    declared = ALGORITHMS.options(ALGORITHMS.find(named["spec"]))
    later = {key: option.default for key, option in declared.items() if key not in stated}
    filled: JSON = json.loads(json.dumps(later))
    return stated | filled


def _rebuild_algorithm(path: Path, named: JSON, algorithm: Algorithm | None) -> Algorithm:
    """Return the algorithm that a configuration names; RunError where another is handed over."""
    if algorithm is None:
        if not named["spec"]:
            raise RunError(
                f"{path} was started with an algorithm that has no name ({named['name']}); "
                "fltrain.resume(folder, algorithm=...) takes it"
            )
        algorithm = build(named["spec"], **named["options"])
    options = json.loads(json.dumps(algorithm.options))  # a tuple is a list in JSON
    # Also where it was built from the folder: code outside fltrain may have changed since then.
    if (algorithm.spec, options) != (named["spec"], _fill_in_later_options(named)):
        raise RunError(
            f"{path} was started with {named['spec'] or named['name']} {named['options']}, "
            f"not {algorithm.spec} {algorithm.options}"
        )
    return algorithm
