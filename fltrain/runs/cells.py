"""From requests and their data to cells, which stay the same from round to round."""

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import nn

from niidpart.data import Data
from niidpart.errors import UsageError

from .. import models
from ..draws import torch_seed
from ..engine.diverged import LARGE
from ..engine.evaluation import require_validation_parts
from ..engine.jobs import Cell
from ..inputs.federated import Federated, load_federated, open_split_data
from ..interface import Algorithm
from ..settings import Settings
from ..tasks.model_task import ModelTask
from .requests import Request

_MANY = 300_000  # test examples an evaluation: more take minutes on a CPU


def build_cells(requests: Sequence[Request], data: Data | None, device: str) -> list[Cell]:
    """Return the cell of each request.

    data: that of the splits; None to read it from where they say. What a split holds is on the
    device once, for all its cells.
    """
    # Splits of a sweep are of one data set: what is read for the first serves the others.
    source = data
    loaded: dict[str, Federated] = {}  # by the split's digest
    cells = []
    for request in requests:
        split = request.split
        if split.digest not in loaded:
            source = open_split_data(split, source, request.data_root)
            place = torch.device(device)
            loaded[split.digest] = load_federated(split, source, place, request.settings)
        federated = loaded[split.digest]
        module = _make_module(request, federated)
        cells.append(build_cell(request.algorithm, module, federated, request.settings))
    return cells


def build_cell(
    algorithm: Algorithm, module: nn.Module, loaded: Federated, settings: Settings
) -> Cell:
    """Return the cell of a run.

    loaded: what is on the device for its split; its examples are shared with other cells, not
    copied. UsageError where the algorithm or the model cannot train on them.
    """
    # Cells of one split may have other seeds, so each has draws of its own.
    data = loaded.augment(settings)
    _warn_of_features(data, settings)
    _warn_of_evaluations(data)
    if algorithm.pooled:
        data = data.pool()
    if algorithm.exam is not None:
        require_validation_parts(algorithm.name, data)
    module = _adapt(algorithm, module, settings).to(data.train.y.device)
    task = ModelTask(module, bf16=settings.bf16, compiled=settings.compile)
    # Not through torch.compile, which would compile for two examples first.
    _require_logits(replace(task, compiled=False), data)
    return Cell(algorithm, task, data, settings)


def name_model(request: Request, shape: tuple[int, ...]) -> str:
    """Return the name of the model for examples of a shape; "" for a module, which has none."""
    if isinstance(request.model, nn.Module):
        return ""
    return models.MODELS.resolve(request.model or models.default(request.split.source.name, shape))


def _make_module(request: Request, data: Federated) -> nn.Module:
    """Return the model, with weights of its own."""
    if isinstance(request.model, nn.Module):
        return copy.deepcopy(request.model)
    name = name_model(request, data.shape)
    return models.create(name, data.shape, data.n_classes, request.settings.model_seed)


def _adapt(algorithm: Algorithm, module: nn.Module, settings: Settings) -> nn.Module:
    """Return the module as the algorithm wants it.

    New layers start from weights of their own stream.
    """
    if algorithm.adapt is None:
        return module
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(torch_seed(settings.model_seed, "adapt"))
        return algorithm.adapt(module, algorithm.hyper)


def _require_logits(task: ModelTask, data: Federated) -> None:
    """Raise UsageError where the model does not turn examples of this shape into [B, K]."""
    parameters = dict(task.module.named_parameters())
    buffers = dict(task.module.named_buffers())
    x = data.train.inputs(slice(0, 2))
    try:
        with torch.no_grad():
            logits = task.forward(parameters, buffers, x, train=False).logits
    except RuntimeError as error:
        raise UsageError(
            f"the model cannot take examples of shape {data.shape}: {error}"
        ) from error
    needed = (len(x), data.n_classes)
    if tuple(logits.shape) != needed:
        raise UsageError(
            f"the model gives {tuple(logits.shape)} for {len(x)} examples; "
            f"{needed}, a number for each class, is needed"
        )


def _warn_of_features(data: Federated, settings: Settings) -> None:
    """Warn of a table whose features are on no usual scale: training may end without an error."""
    if len(data.shape) != 1 or settings.normalise != "none":
        return
    largest = float(data.train.x.abs().max())
    if largest > LARGE:
        warnings.warn(
            f"features of this table reach {largest:.4g}, and training may stay at chance; "
            "--normalise data scales them",
            stacklevel=2,
        )


def _warn_of_evaluations(data: Federated) -> None:
    """Warn of evaluations that take long."""
    if data.noisy_test is None or data.global_test is None:
        return
    passes = len(data.val.indptr) - 1
    if passes * len(data.global_test.y) > _MANY:
        warnings.warn(
            f"each evaluation goes over the test set {passes} times (--noisy-test); "
            "--eval-every 10 makes that rarer",
            stacklevel=2,
        )
