"""One model a file; the folder is the registry: a function `(shape, n_classes) -> nn.Module`.

shape: of one example, (C, H, W) or (D,). Any `nn.Module` that maps [B, *shape] to logits [B, K]
will do. One made of `Staged` also declares its stages, which algorithms that look inside a model
need.
"""

import inspect
import warnings
from collections.abc import Callable

import torch
from torch import nn

from niidpart.errors import UsageError
from niidpart.registry import Registry, require_takes

from ..draws import torch_seed
from ..interface import Algorithm
from ..libraries import TORCHVISION
from ._letters import Letters
from ._staged import Staged
from ._torchvision import find_torchvision

__all__ = ["MODELS", "Letters", "Staged", "adapt", "create", "default"]

MODELS = Registry("fltrain.models", "model", other_names=(f"{TORCHVISION}NAME", "FILE.py:FUNCTION"))

_OWN = {"fcube": "linear", "shakespeare": "lstm"}  # data sets with a model of their own
_NO_SHAPES = (int, float, bool, str, "int", "float", "bool", "str")  # types that no shape has
_ADVICE = (
    "write a function that makes one from what the data is, def net(shape, n_classes): "
    "return {}(...), and give its name"
)


def default(source: str, shape: tuple[int, ...]) -> str:
    """Return the name of the papers' model for some data.

    Parameters
    ----------
    source : str
        The name of the data set.
    shape : tuple of int
        Of one example, (C, H, W) or (D,).

    Returns
    -------
    str

    Examples
    --------
    >>> from fltrain import models
    >>> models.default("mnist", (1, 28, 28))
    'cnn'
    """
    if source in _OWN:
        return _OWN[source]
    if len(shape) == 1:
        return "mlp"
    return "cnn" if shape[1:] in ((28, 28), (32, 32)) else "hidden200"


def create(spec: str, shape: tuple[int, ...], n_classes: int, seed: int) -> nn.Module:
    """Return a model whose initial weights are a function of the seed.

    Torch's global generator is left as it was.

    Parameters
    ----------
    spec : str
        A file of `fltrain/models`, `torchvision:NAME`, or `file.py:function`.
    shape : tuple of int
        Of one example, (C, H, W) or (D,).
    n_classes : int
        How many classes there are, K.
    seed : int
        Of the initial weights.

    Returns
    -------
    torch.nn.Module

    Raises
    ------
    UsageError
        There is no such model, it is not made for the shape, or a function of a user's own returns
        something else.

    Examples
    --------
    >>> from fltrain import models
    >>> model = models.create("hidden200", (1, 8, 8), 10, seed=0)
    >>> sum(p.numel() for p in model.parameters())
    15010
    """
    make = find_torchvision(spec) if spec.startswith(TORCHVISION) else MODELS.find(spec)
    _require_factory(make, spec)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        module = _call_factory(make, spec, shape, n_classes)
    if not isinstance(module, nn.Module):
        raise UsageError(f"{spec} returned {module!r}; a torch.nn.Module is needed")
    return module


def _require_factory(make: Callable[..., object], spec: str) -> None:
    """Raise UsageError for what does not make a module of a shape and a number of classes."""
    if isinstance(make, nn.Module):
        name = type(make).__name__
        raise UsageError(
            f"model {spec!r} is a module ({name}) that is made already; {_ADVICE.format(name)}"
        )
    try:
        require_takes(make, "model", spec, given=("shape", "n_classes"))
    except UsageError as error:
        if not isinstance(make, type):
            raise
        raise UsageError(f"{error}; {_ADVICE.format(make.__name__)}") from error
    if ":" in spec and not spec.startswith(TORCHVISION):
        _check_meaning(make, spec)


def _check_meaning(make: Callable[..., object], spec: str) -> None:
    """Raise UsageError, or warn of a class, where shape and classes come as something else.

    Net(hidden, depth) takes any two values: what they are meant for shows in names and types alone.
    """
    first, second = [*inspect.signature(make).parameters.values(), None, None][:2]
    if first is None or second is None or first.kind is first.VAR_POSITIONAL:
        return
    called = getattr(make, "__name__", spec)
    asked = f"model {spec!r} is called with a shape and a number of classes, and takes "
    if first.annotation in _NO_SHAPES or "class" in first.name:
        raise UsageError(f"{asked}{first} first; {_ADVICE.format(called)}")
    is_clear = "shape" in first.name and "class" in second.name
    if isinstance(make, type) and not is_clear:
        warnings.warn(
            f"{asked}{first.name} and {second.name}; if that is not the same, "
            f"{_ADVICE.format(called)}",
            stacklevel=2,
        )


def _call_factory(
    make: Callable[..., object], spec: str, shape: tuple[int, ...], n_classes: int
) -> object:
    """Return what a factory makes; UsageError where a class takes its arguments for others."""
    if ":" not in spec or not isinstance(make, type):
        return make(shape, n_classes)
    try:
        return make(shape, n_classes)
    except TypeError as error:
        called = f"{make.__name__}({shape}, {n_classes})"
        raise UsageError(
            f"model {spec!r} is a class, and {called} failed: {error}; "
            f"{_ADVICE.format(make.__name__)}"
        ) from error


def adapt(module: nn.Module, algorithm: Algorithm, seed: int) -> nn.Module:
    """Return a model as an algorithm wants it: MOON puts a head of its own on it.

    New layers start from weights of their own, which are a function of the seed. Torch's global
    generator is left as it was.

    Parameters
    ----------
    module : torch.nn.Module
    algorithm : Algorithm
    seed : int
        Of the initial weights.

    Returns
    -------
    torch.nn.Module
        The module itself where the algorithm takes any model.

    Examples
    --------
    >>> from fltrain import algorithms, models
    >>> model = models.create("cnn", (1, 28, 28), 10, seed=0)
    >>> models.adapt(model, algorithms.fedavg(), seed=0) is model
    True
    """
    if algorithm.adapt is None:
        return module
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(torch_seed(seed, "adapt"))
        return algorithm.adapt(module, algorithm.hyper)
