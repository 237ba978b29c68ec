"""A last layer that is linear in the features, for what gives parties another, or trains it."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from niidpart.errors import UsageError

from .job import Out
from .named_layers import find_layers
from .task import Task
from .tree import Tree

__all__ = ["LinearHead", "find_linear_head"]


class LinearHead(NamedTuple):
    """The names of weight and bias of a last layer.

    Attributes
    ----------
    weight : str
    bias : str
        "" for no bias.

    Examples
    --------
    >>> LinearHead("out.weight", bias="").names
    ['out.weight']
    """

    weight: str
    bias: str

    @property
    def names(self) -> list[str]:
        """Of all its parameters."""
        return [name for name in self if name]

    def apply(self, params: Tree, features: Tensor) -> Tensor:
        """Return the logits [B, K] of features [B, ...], by the parameters of those names.

        Parameters
        ----------
        params : Tree
        features : Tensor

        Returns
        -------
        Tensor
        """
        bias = params[self.bias] if self.bias else None
        return F.linear(features.flatten(1), params[self.weight], bias)


def find_linear_head(
    task: Task, params: Tree, buffers: Tree, shape: tuple[int, ...], what: str
) -> LinearHead:
    """Return the last layer of a model, whose logits are linear in the features.

    Parameters
    ----------
    task : Task
    params, buffers : Tree
        Of one model.
    shape : tuple of int
        Of one example as the model gets it.
    what : str
        For the error: who does what with it.

    Returns
    -------
    LinearHead

    Raises
    ------
    UsageError
        Where another layer, or more than one, makes the logits of the features.

    Examples
    --------
    >>> from fltrain.tasks.model_task import ModelTask
    >>> task = ModelTask(fltrain.models.create("mlp", (6,), 3, seed=0))
    >>> params, buffers = task.split_weights()
    >>> find_linear_head(task, params, buffers, (6,), "I train it")
    LinearHead(weight='out.weight', bias='out.bias')
    """
    names = sorted(find_layers(task, "head").params)
    weights = [name for name in names if params[name].dim() == 2]
    biases = [name for name in names if params[name].dim() == 1]
    is_one_layer = len(weights) == 1 and len(biases) <= 1
    if is_one_layer and len(weights + biases) == len(names):
        head = LinearHead(weights[0], "".join(biases))
        # from 0 to 1, as pixels; a model of letters takes them all for the first
        x = torch.rand(4, *shape, generator=torch.Generator().manual_seed(0))
        x = x.to(params[head.weight])
        if _makes_logits(head, params, task.forward(params, buffers, x, train=False)):
            return head
    raise UsageError(
        f"{what}, linear in the features, and the head of this model ({', '.join(names)}) is not: "
        "its stage has to be one nn.Linear. Choose a --model of fltrain, or name the layer by "
        "--features-layer"
    )


def _makes_logits(head: LinearHead, params: Tree, out: Out) -> bool:
    """Return whether the logits are what the layer gives for the features."""
    if out.features.flatten(1).shape[1] != params[head.weight].shape[1]:
        return False
    logits = head.apply(params, out.features)
    return logits.shape == out.logits.shape and torch.allclose(logits, out.logits, 1e-3, 1e-4)
