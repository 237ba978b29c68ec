"""The module of a run: made or handed over, with its features, as the algorithm wants it."""

import copy
import warnings
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

from torch import nn

from niidpart.errors import UsageError
from niidpart.registry import resolve_function

from .. import models
from ..feature_layer import FoundFeatures, find_features, tap_named_layer
from ..inputs.federated import Federated
from ..inputs.letters import require_letters
from ..libraries import AND, list_models
from ..models._letters import count_letters
from ..tasks.losses import Loss
from ..tasks.model_task import ModelTask
from ..tasks.stages import declares_stages
from ..tasks.unlike_task import UnlikeTask
from .party_models import deal_models
from .requests import Request


def name_model(request: Request, shape: tuple[int, ...]) -> str:
    """Return the name of the model for examples of a shape; "" for a module, which has none."""
    if isinstance(request.model, nn.Module):
        return ""
    name = request.model or models.default(request.split.source.name, shape)
    return AND.join(map(resolve_function, list_models(name)))


class MadeTask(NamedTuple):
    """The task of a run. is_drawn: whether a seed drew any of its weights."""

    task: ModelTask
    is_drawn: bool


class _MadeModule(NamedTuple):
    """A module of a run.

    features_fault: why it has no features, "" where it has some. is_drawn: as of `MadeTask`.
    """

    module: nn.Module
    features_fault: str
    is_drawn: bool


class _TaskWords(TypedDict):
    """What a task is made with besides its module."""

    loss: Loss
    bf16: bool
    compiled: bool
    test_loss: Loss
    no_features: str


def make_task(request: Request, data: Federated) -> MadeTask:
    """Return the task of a run: of one module, or of those that parties take turns in."""
    names = list_models(name_model(request, data.shape))
    distinct = list(dict.fromkeys(names))
    made = [_make_module(request, data, name) for name in distinct]
    faults = [one.features_fault for one in made if one.features_fault]
    words = _TaskWords(
        loss=request.losses.train,
        bf16=request.settings.bf16,
        compiled=request.settings.compile,
        test_loss=request.losses.test,
        no_features=faults[0] if faults else "",
    )
    if len(made) == 1:
        return MadeTask(ModelTask(made[0].module, **words), made[0].is_drawn)
    dealt = deal_models(request.split, len(names), request.settings)
    _warn_of_idle_models(names, dealt)
    task = UnlikeTask(
        nn.ModuleList(one.module for one in made),
        **words,
        names=tuple(distinct),
        of_party=tuple(distinct.index(names[place]) for place in dealt),
    )
    return MadeTask(task, is_drawn=True)


def _warn_of_idle_models(names: Sequence[str], dealt: Sequence[int]) -> None:
    """Warn of models that no party has: there are more of them than parties, or kinds of these."""
    idle = sorted(set(names) - {names[place] for place in dealt})
    if idle:
        warnings.warn(
            f"no party has model {', '.join(idle)}: {len(names)} take turns among parties, or "
            "among the values of the models-by column; leave models out, or take another column",
            stacklevel=2,
        )


def _make_module(request: Request, data: Federated, name: str) -> _MadeModule:
    """Return a module of a run on its device. name: "" for the one that was handed over.

    The features are the input of a layer named or found, or those of stages. The initial weights
    are those that were asked for: of the model that the algorithm made, where they fit it, else of
    the model as it was before.
    """
    settings, algorithm, weights = request.settings, request.algorithm, request.weights
    seed = settings.model_seed
    if isinstance(request.model, nn.Module):
        module = copy.deepcopy(request.model)
    else:
        module = models.create(name, data.shape, data.n_classes, seed)
    n_letters = count_letters(module)
    if n_letters:
        require_letters(data, n_letters)
    if not any(weight.requires_grad for weight in module.parameters()):
        raise UsageError(
            f"{f'model {name}' if name else 'the model'} has no parameter that is trained; let "
            "some have requires_grad=True, or take another --model"
        )
    examples = data.sample.x
    found = FoundFeatures(module, fault="")
    if settings.features_layer is not None:
        found = FoundFeatures(tap_named_layer(module, settings.features_layer, examples), fault="")
    elif not declares_stages(module):
        found = find_features(module, examples)
    module = found.module
    adapted = models.adapt(module, algorithm, seed)
    is_drawn = adapted is not module or not isinstance(request.model, nn.Module)
    if weights is not None and weights.tensors is not None:
        if adapted is module or weights.fits(adapted):
            is_drawn = not weights.fits(adapted)
            weights.load(adapted)
        else:
            weights.load(module)
            adapted = models.adapt(module, algorithm, seed)
    return _MadeModule(adapted.to(data.device), found.fault, is_drawn)
