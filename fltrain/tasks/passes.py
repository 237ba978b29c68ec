"""A pass through a module at given weights, which gives the output of each stage."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from niidpart.errors import UsageError

from ..feature_layer import FeatureTap, find_tapped_layer
from ..tree import Tree
from .dropout import CounterDropout, draw_by, list_dropouts
from .stages import SequentialStages, declares_stages, is_plain_sequential


class Passable(NamedTuple):
    """A module, with what a pass needs to know of it.

    module: what gives the output of each stage, where it can be read so. n_stages: 0 where it does
    not declare any. dropouts: layers that draw by a key. tap: what listens to the layer whose input
    are the features; where there is none, to nothing. is_tapped: whether there is one. head: the
    names of the layers that take the features, as far as one knows.
    """

    module: nn.Module
    n_stages: int
    dropouts: list[CounterDropout]
    tap: FeatureTap
    is_tapped: bool
    head: tuple[str, ...]

    @classmethod
    def of(cls, module: nn.Module) -> "Passable":
        """Look at a module."""
        tapped = find_tapped_layer(module)
        dropouts = list_dropouts(module)
        n_stages = 0
        head: tuple[str, ...] = ()
        if is_plain_sequential(module):
            module = SequentialStages(module)
            n_stages = len(module.stages)
            head = module.name_last_stage()
        elif declares_stages(module):
            names = [name for name, _ in module.named_children()]
            n_stages = len(names)
            head = tuple(names[-1:])
        if tapped is not None:
            head = (tapped.name,)
        return cls(
            module=module,
            n_stages=n_stages,
            dropouts=dropouts,
            tap=FeatureTap() if tapped is None else tapped.tap,
            is_tapped=tapped is not None,
            head=head,
        )


def run_stages(
    what: Passable,
    params: Tree,
    buffers: Tree,
    x: Tensor,
    key: int | Tensor | None,
    upto: int | None,
    detach: bool,
) -> list[list[Tensor]]:
    """Return (output of each stage, of a model that is not made of stages its output; features).

    Features: what the tap has heard, in a list.
    """
    options = {"upto": upto, "detach": detach, "taps": True} if what.n_stages else {}
    with draw_by(what.dropouts, key), what.tap.listen() as features:
        out = functional_call(what.module, (params, buffers), (x,), options)
    return [out if what.n_stages else [out], features]


def make_batch_fault() -> UsageError:
    """Return what is said where a batch of one example would be all that batch norm sees."""
    return UsageError(
        "batch norm cannot train on a batch of one example; "
        "choose a --batch-size that leaves no such rest"
    )


@functools.cache
def compile_stages() -> Callable[..., list[list[Tensor]]]:
    """Return `run_stages` through torch.compile, made when first asked for.

    One for all tasks: executors copy a task for each job, code is compiled once.
    """
    return torch.compile(run_stages)
