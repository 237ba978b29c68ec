"""The module of a run: made or handed over, with its features, as the algorithm wants it."""

import copy
from typing import NamedTuple

from torch import nn

from niidpart.registry import resolve_function

from .. import models
from ..feature_layer import FoundFeatures, find_features, tap_named_layer
from ..inputs.federated import Federated
from ..inputs.letters import require_letters
from ..models._letters import count_letters
from ..tasks.stages import declares_stages
from .requests import Request


def name_model(request: Request, shape: tuple[int, ...]) -> str:
    """Return the name of the model for examples of a shape; "" for a module, which has none."""
    if isinstance(request.model, nn.Module):
        return ""
    name = request.model or models.default(request.split.source.name, shape)
    return resolve_function(name)


class MadeModule(NamedTuple):
    """The module of a run.

    features_fault: why it has no features, "" where it has some. is_drawn: whether a seed drew any
    of its weights.
    """

    module: nn.Module
    features_fault: str
    is_drawn: bool


def make_module(request: Request, data: Federated) -> MadeModule:
    """Return the module of a run on its device.

    The features are the input of a layer named or found, or those of stages. The initial weights
    are those that were asked for: of the model that the algorithm made, where they fit it, else of
    the model as it was before.
    """
    settings, algorithm, weights = request.settings, request.algorithm, request.weights
    seed = settings.model_seed
    if isinstance(request.model, nn.Module):
        module = copy.deepcopy(request.model)
    else:
        name = name_model(request, data.shape)
        module = models.create(name, data.shape, data.n_classes, seed)
    n_letters = count_letters(module)
    if n_letters:
        require_letters(data, n_letters)
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
    return MadeModule(adapted.to(data.device), found.fault, is_drawn)
