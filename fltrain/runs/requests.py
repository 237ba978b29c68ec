"""What was asked for, all names looked up."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

import niidpart
from niidpart.errors import UsageError

from .. import presets
from ..algorithms import ALGORITHMS, build
from ..engine.processes import require_worker_processes
from ..engine.ranks import current_ranks
from ..interface import Algorithm
from ..presets import ResolvedPreset
from ..settings import SETTINGS, Settings
from ..tasks.losses import Losses, resolve_losses
from .fitting import fit_settings
from .grid import name_folder
from .idle_settings import mention_given_way
from .initial_weights import InitialWeights
from .objective import Objective
from .parties import draw_new_parties, require_choice, require_home_parts
from .party_models import require_no_mean

Split = str | Path | niidpart.FederatedSplit


@dataclass(frozen=True, eq=False)
class Request:
    """A run as it was asked for, all names looked up.

    model: None for the papers' model of such data. device: cpu or cuda, found for the one that the
    settings ask for. held_out: the parties that never train. weights: those to begin with, None for
    those that the seed draws. asked: the settings that were asked for by name. numbers: of a sweep,
    those by which this run differs from the others.
    """

    split: niidpart.FederatedSplit
    algorithm: Algorithm
    model: nn.Module | str | None
    preset: str | None
    data_root: str | Path | None
    settings: Settings
    device: str
    held_out: tuple[int, ...] = ()
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
) -> Request:
    """Return the request of a new run, a preset's values and the defaults in their places.

    options: of the algorithm; one that is handed over keeps those that are not among them.
    """
    require_model(model)
    values = resolve_preset(preset, split, algorithm, model)
    if isinstance(algorithm, str):
        algorithm = build(algorithm, **values.options | dict(options or {}))
    elif options:
        algorithm = build(algorithm.spec, **algorithm.options | dict(options))
    _require_algorithm(algorithm)
    _refuse_options(algorithm, settings)
    together = Settings.of(values.settings | dict(settings))
    complete = fit_settings(together, algorithm, settings)
    mention_given_way(preset, together, complete, settings)
    require_home_parts(split, algorithm, complete)
    held_out = draw_new_parties(split, complete)
    require_choice(split, held_out, complete)
    chosen = model or values.model or algorithm.model
    require_no_mean(chosen, algorithm, complete, weights)
    device = find_device(complete.device)
    # A run that had workers resumes without them, so this is asked of new runs alone.
    if complete.engine == "processes":
        require_worker_processes(device, current_ranks().size)
    return Request(
        split=split,
        algorithm=algorithm,
        model=chosen,
        preset=preset,
        data_root=data_root,
        settings=complete,
        device=device,
        held_out=held_out,
        objective=objective,
        losses=resolve_losses(objective.loss, complete.label_smoothing),
        weights=weights,
        asked=frozenset(settings),
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


def require_model(model: object) -> None:
    if not isinstance(model, nn.Module | str | None):
        raise UsageError(
            f"model is {model!r}; give a name, 'file.py:function', a torch.nn.Module, several "
            "names with a + between, or None for the papers' model of such data"
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


def find_device(asked: str) -> str:
    """Return cpu or cuda; UsageError where cuda is asked for and not there."""
    has_cuda = torch.cuda.is_available()
    if asked == "cuda" and not has_cuda:
        raise UsageError("device is cuda, and torch sees no CUDA device here; use --device cpu")
    if asked == "auto":
        return "cuda" if has_cuda else "cpu"
    return asked
