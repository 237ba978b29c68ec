"""From a split, its data and what was asked for to all that stays the same from round to round."""

import warnings
from dataclasses import fields, replace
from typing import Any

import torch
from torch import nn

import niidpart
from niidpart.data import Data
from niidpart.errors import UsageError
from niidpart.heterogeneity import map_beta

from .. import models, presets, tree
from ..algorithms import ALGORITHMS
from ..draws import key
from ..engine.diverged import LARGE
from ..engine.evaluation import require_validation_parts
from ..engine.jobs import Cell
from ..engine.stacked.memory import GIB, free_memory
from ..inputs.augmentation import make_augmentation
from ..inputs.federated import Federated, load_federated
from ..interface import Algorithm, Info, State
from ..presets import ResolvedPreset
from ..settings import Settings
from ..tasks.model_task import ModelTask

_MANY = 300_000  # test examples an evaluation: more take minutes on a CPU


def preset_values(
    preset: str | None,
    split: niidpart.FederatedSplit,
    algorithm: Algorithm | str,
    model: nn.Module | str | None,
) -> ResolvedPreset:
    """The preset's values for this split; nothing where none is asked for."""
    if preset is None:
        return ResolvedPreset({}, None, {}, (), (), known=False)
    name = algorithm if isinstance(algorithm, str) else algorithm.spec
    return presets.find(preset).on(split, name, model if isinstance(model, str) else None)


def not_options(algorithm: Algorithm, asked: dict[str, Any]) -> None:
    """ValueError where an algorithm's option is given as a setting: it belongs to the algorithm."""
    names = {f.name for f in fields(Settings)}
    for name in asked:
        if name not in names and (
            owners := [owner for owner, option in ALGORITHMS.all_options() if option.name == name]
        ):
            like = algorithm.name if algorithm.name in owners else owners[0]
            raise UsageError(
                f"{name} is an option of {', '.join(owners)}, no setting; give algorithm=fltrain.algorithms.{like}({name}=...)"
            )


def as_needed(settings: Settings, algorithm: Algorithm, asked: dict[str, Any]) -> Settings:
    """The settings with those that the algorithm cannot do without. ValueError where another value was asked for."""
    for name, needed in algorithm.settings.items():
        if asked.get(name, needed) != needed:
            raise UsageError(
                f"{algorithm.name} needs {name.replace('_', '-')} {needed}, {asked[name]} was asked for; leave it out"
            )
    return replace(settings, **algorithm.settings)


def named_module(spec: str, data: Data, settings: Settings) -> nn.Module:
    return models.create(spec, shape_of(data), len(data.class_names), _init_seed(settings))


def prepare(
    split: niidpart.FederatedSplit,
    data: Data,
    algorithm: Algorithm,
    module: nn.Module,
    settings: Settings,
    held: Federated | None = None,
) -> Cell:
    """held: what is on the device for this split already, for other seeds and learning rates; its examples are then shared, not copied."""
    device = device_of(settings)
    federated = (
        load_federated(split, data, device, settings) if held is None else _drawing(held, settings)
    )
    federated = federated.pool() if algorithm.pooled else federated
    if algorithm.exam is not None:
        require_validation_parts(algorithm.name, federated)
    if algorithm.adapt is not None:
        module = _adapted(algorithm, module, settings)
    task = ModelTask(module.to(device), bf16=settings.bf16, compiled=settings.compile)
    _fits(replace(task, compiled=False), federated)
    _tell(federated, settings)
    return Cell(algorithm, task, federated, settings)


def _drawing(held: Federated, settings: Settings) -> Federated:
    """The same examples, augmented by the draws of these settings."""
    augmented = make_augmentation(settings, held.shape)
    parts = {name: getattr(held, name) for name in ("train", "val", "test")}
    return replace(
        held,
        **{
            name: replace(part, prepare=replace(part.prepare, augment=augmented))
            for name, part in parts.items()
        },
    )


def _fits(task: ModelTask, data: Federated) -> None:
    """ValueError where the model does not turn examples of this shape into logits [B, K]."""
    module, x = task.module, data.train.inputs(slice(0, 2))
    try:
        with torch.no_grad():
            out = task.forward(
                dict(module.named_parameters()), dict(module.named_buffers()), x, train=False
            ).logits
    except RuntimeError as error:
        raise UsageError(
            f"the model cannot take examples of shape {data.shape}: {error}"
        ) from error
    if tuple(out.shape) != (len(x), data.n_classes):
        raise UsageError(
            f"the model gives {tuple(out.shape)} for {len(x)} examples; {(len(x), data.n_classes)}, a number for each class, is needed"
        )


def _tell(data: Federated, settings: Settings) -> None:
    """Warns of what would make a run look bad, or long, without an error."""
    if (
        len(data.shape) == 1
        and settings.normalise == "none"
        and (largest := float(data.train.x.abs().max())) > LARGE
    ):
        warnings.warn(
            f"features of this table reach {largest:.4g}, and training may stay at chance; --normalise data scales them",
            stacklevel=2,
        )
    passes = (
        data.noisy_test is not None and data.global_test is not None and len(data.val.indptr) - 1
    )
    if passes and passes * len(data.global_test.y) > _MANY:
        warnings.warn(
            f"each evaluation goes over the test set {passes} times (--noisy-test); --eval-every 10 makes that rarer",
            stacklevel=2,
        )


def _adapted(algorithm: Algorithm, module: nn.Module, settings: Settings) -> nn.Module:
    """The module as the algorithm wants it; new layers start from weights of their own stream."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(key(_init_seed(settings), "adapt") >> 1)
        return module if algorithm.adapt is None else algorithm.adapt(module, algorithm.hyper)


def _init_seed(settings: Settings) -> int:
    return settings.seed if settings.init_seed is None else settings.init_seed


def initial(cell: Cell) -> State:
    """Round 0. A frozen parameter (requires_grad=False) is a buffer: used, averaged, not trained. ValueError where it does not fit into memory."""
    device = cell.data.train.y.device
    parameters = dict(cell.task.module.named_parameters())
    fixed = {name: p for name, p in parameters.items() if not p.requires_grad} | dict(
        cell.task.module.named_buffers()
    )
    models = {
        name: p.detach().to(device).unsqueeze(0).clone()
        for name, p in parameters.items()
        if p.requires_grad
    }
    buffers = {name: b.detach().to(device).unsqueeze(0).clone() for name, b in fixed.items()}
    beta = torch.from_numpy(map_beta(cell.data.counts.numpy()))
    info = Info(
        cell.data.counts.sum(1),
        cell.data.counts,
        beta,
        cell.data.shape,
        cell.settings.seed,
        cell.settings.lr,
    )
    _room(cell, info, models, buffers)
    return cell.algorithm.init(cell.task, info, models, buffers, cell.algorithm.hyper)


def _room(cell: Cell, info: Info, models: tree.Tree, buffers: tree.Tree) -> None:
    """ValueError where what the parties keep does not fit into memory, before it is asked for: a system may grant it and kill the run later."""
    n_parties, there = len(info.n), free_memory(cell.data.train.y.device)
    if n_parties * 4 * (tree.nbytes(models) + tree.nbytes(buffers)) < there:
        return

    def kept(parties: int) -> int:
        few = info._replace(
            n=info.n[:parties], counts=info.counts[:parties], beta=info.beta[:parties]
        )
        hyper = cell.algorithm.hyper
        return tree.nbytes(cell.algorithm.init(cell.task, few, models, buffers, hyper).parties)

    each = kept(2) - kept(1)
    if n_parties * each > there:
        raise UsageError(
            f"{cell.algorithm.name} keeps {each / GIB:.3g} GiB at each of {n_parties} parties, {n_parties * each / GIB:.3g} GiB in all, and "
            f"{there / GIB:.3g} GiB are free; take a smaller --model, a split of fewer parties (at most {int(there // each)}), "
            "or an algorithm that keeps nothing at the parties, such as fedavg"
        )


def shape_of(data: Data) -> tuple[int, ...]:
    """Of one example as the model gets it: (C, H, W) or (D,)."""
    if data.features is None:
        raise UsageError("the data has labels but no features; there is nothing to train on")
    one = data.features(slice(0, 1)).shape[1:]
    return (1, *one) if len(one) == 2 else (one[2], one[0], one[1]) if len(one) == 3 else tuple(one)


def device_of(settings: Settings) -> torch.device:
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise UsageError("device is cuda, and torch sees no CUDA device here; use --device cpu")
    return torch.device(
        "cuda"
        if settings.device == "cuda" or (settings.device == "auto" and torch.cuda.is_available())
        else "cpu"
    )


def moved(state: State, device: torch.device) -> State:
    def move(t: tree.Tree) -> tree.Tree:
        return tree.map(lambda leaf: leaf.to(device), t)

    return State(move(state.models), move(state.buffers), move(state.server), move(state.parties))
