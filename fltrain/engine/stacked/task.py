"""A task whose functions may stand inside `torch.func.vmap`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ...tasks.model_task import ModelTask
from ...tree import Tree
from .convolution import with_convolutions


@dataclass(frozen=True, eq=False)
class StackedTask(ModelTask):
    """A `ModelTask` that takes gradients by `torch.func`, whose transforms nest.

    Autograd, which `ModelTask` uses, does not see through vmap.
    """

    def differentiate(
        self, f: Callable[[Tree], tuple[Tensor, Any]], params: Tree
    ) -> tuple[Tree, Tensor, Any]:
        """Return (gradient, loss, aux) of f(params) -> (loss, aux) at params."""
        grads, (loss, aux) = torch.func.grad_and_value(f, has_aux=True)(params)
        return grads, loss, aux


def make_stacked_task(task: ModelTask, convolutions: str) -> StackedTask:
    """Return the task for many jobs at once. convolutions: see `with_convolutions`."""
    module = with_convolutions(task.module, convolutions)
    return StackedTask(
        module,
        task.loss,
        bf16=task.bf16,
        compiled=task.compiled,
        test_loss=task.test_loss,
    )


def make_plain_task(task: ModelTask, convolutions: str) -> ModelTask:
    """Return the same model for one job, whose operations are counted."""
    return replace(task, module=with_convolutions(task.module, convolutions))
