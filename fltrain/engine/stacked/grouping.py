"""Which cells can share a stack."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from ...interface import Algorithm
from ...tasks.model_task import ModelTask
from ...tree import Tree
from ..jobs import Cell
from .alike import alike

# Settings that are equal in one stack. The others are numbers of a job (learning rate, momentum,
# seed), or decide nothing that happens within a round.
_EQUAL_SETTINGS = (
    "local_epochs",
    "local_steps",
    "batch_size",
    "weight_decay",
    "shuffle",
    "bf16",
    "compile",
)
_JOB_PARTS = ("begin", "direction", "finish", "decay", "lockstep")  # what an algorithm does to jobs


def group_cells(cells: Sequence[Cell]) -> list[list[int]]:
    """Return the numbers of the cells that can share a stack, in order.

    Such cells differ in learning rate, momentum, seed, data, and in numbers that algorithms read
    from `hyper`.
    """
    groups: list[list[int]] = []
    for i, cell in enumerate(cells):
        fitting = [group for group in groups if _can_share(cells[group[0]], cell)]
        if fitting:
            fitting[0].append(i)
        else:
            groups.append([i])
    return groups


def _can_share(a: Cell, b: Cell) -> bool:
    if any(getattr(a.settings, name) != getattr(b.settings, name) for name in _EQUAL_SETTINGS):
        return False
    if _form_of_data(a) != _form_of_data(b):
        return False
    return _same_rule(a.algorithm, b.algorithm) and _same_model(a.task, b.task)


def _form_of_data(cell: Cell) -> tuple[Any, ...]:
    x = cell.data.train.x
    return cell.data.shape, cell.data.n_classes, x.dtype, x.device


def _same_rule(a: Algorithm, b: Algorithm) -> bool:
    """Return whether the functions of one do for the other.

    They do where both have one name, and options that differ only where `hyper` says them. A
    function that reads an option from elsewhere (the closure of its constructor) is not alike where
    the option differs.
    """
    if a is b:
        return True
    if not all(alike(getattr(a, part), getattr(b, part)) for part in _JOB_PARTS):
        return False
    if not a.spec or a.spec != b.spec:
        return False
    if a.options.keys() != b.options.keys():
        return False
    if a.hyper.keys() != b.hyper.keys():
        return False
    numbers = {name for name in a.hyper if _is_number(a.hyper[name]) and _is_number(b.hyper[name])}
    for name in a.options:
        is_said = name in numbers and _says_option(a, name) and _says_option(b, name)
        if not is_said and a.options[name] != b.options[name]:
            return False
    return all(a.hyper[name] == b.hyper[name] for name in a.hyper if name not in numbers)


def _says_option(algorithm: Algorithm, name: str) -> bool:
    """Return whether `hyper` holds an option under its own name."""
    return bool(algorithm.options[name] == algorithm.hyper[name])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same_model(a: ModelTask, b: ModelTask) -> bool:
    """Return whether two modules compute the same function of parameters and buffers."""
    if a.loss is not b.loss:
        return False
    if a.module is b.module:
        return True
    layers, others = (list(task.module.named_modules()) for task in (a, b))
    if [name for name, _ in layers] != [name for name, _ in others]:
        return False
    return all(_same_layer(p, q) for (_, p), (_, q) in zip(layers, others, strict=True))


def _same_layer(a: nn.Module, b: nn.Module) -> bool:
    if type(a) is not type(b) or _forms_of_tensors(a) != _forms_of_tensors(b):
        return False
    mine, its = _plain_attributes(a), _plain_attributes(b)
    if mine.keys() != its.keys():
        return False
    return all(_same_value(value, its[name]) for name, value in mine.items())


def _forms_of_tensors(layer: nn.Module) -> list[tuple[Any, ...]]:
    """Return name, shape, type and need of a gradient of a layer's own parameters and buffers."""
    own = [*layer.named_parameters(recurse=False), *layer.named_buffers(recurse=False)]
    return [(name, leaf.shape, leaf.dtype, leaf.requires_grad) for name, leaf in own]


def _plain_attributes(layer: nn.Module) -> Tree:
    """Return what is set on a layer besides its tensors and children, such as a stride.

    training: executors set it as they need it.
    """
    return {k: v for k, v in vars(layer).items() if not k.startswith("_") and k != "training"}


def _same_value(a: Any, b: Any) -> bool:
    """Return whether two attributes are equal; two tensors are taken to differ."""
    if a is b:
        return True
    if isinstance(a, Tensor) or type(a) is not type(b):
        return False
    return bool(a == b)
