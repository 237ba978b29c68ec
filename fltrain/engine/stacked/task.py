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
    """Gradients by `torch.func`, whose transforms nest; `ModelTask` takes them by autograd, which does not see through vmap."""

    def differentiate(
        self, f: Callable[[Tree], tuple[Tensor, Any]], params: Tree
    ) -> tuple[Tree, Tensor, Any]:
        """(gradient, loss, aux) of f(params) -> (loss, aux) at params."""
        grads, (loss, aux) = torch.func.grad_and_value(f, has_aux=True)(params)
        return grads, loss, aux


def make_stacked_task(task: ModelTask, convolutions: str) -> StackedTask:
    """The task for many jobs at once. convolutions: "grouped" or "product" (`with_convolutions`)."""
    return StackedTask(
        with_convolutions(task.module, convolutions),
        task.loss,
        bf16=task.bf16,
        compiled=task.compiled,
    )


def make_plain_task(task: ModelTask, convolutions: str) -> ModelTask:
    """The same for one job, as what is counted and compared."""
    return replace(task, module=with_convolutions(task.module, convolutions))
