"""One model a file; the folder is the registry. A model is a function `(shape, n_classes) -> nn.Module`.

shape: of one example, (C, H, W) or (D,). Any `nn.Module` that maps [B, *shape] to logits [B, K] will do; one made of `Staged` also
declares its stages, which algorithms that look inside a model need.
"""

import torch
from torch import nn

from niidpart.errors import UsageError
from niidpart.registry import Registry

from ._staged import Staged

__all__ = ["MODELS", "Staged", "create", "default"]

MODELS = Registry("fltrain.models", "model")


def default(source: str, shape: tuple[int, ...]) -> str:
    """The papers' model for the data: by the name of its source and the shape of one example."""
    if source == "fcube":
        return "linear"
    if len(shape) == 1:
        return "mlp"
    return "cnn" if shape[1:] in ((28, 28), (32, 32)) else "hidden200"


def create(spec: str, shape: tuple[int, ...], n_classes: int, seed: int) -> nn.Module:
    """The model of that name (or `file.py:function`), its initial weights a function of `seed`; the global generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        module = MODELS.find(spec)(shape, n_classes)
    if not isinstance(module, nn.Module):
        raise UsageError(f"{spec} returned {module!r}; a torch.nn.Module is needed")
    return module
