"""The head stays as it was drawn, and the body is FedAvg's.

State: models and buffers [1, ...], the head among them as it began. Carried: moves, whether a
parameter of the head moves: it does not.
"""

from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor

from ..directions.affine import Affine, AffineDirection
from ..flat_tree import leave_out
from ..interface import Algorithm, AtLeast, Hyper, Info, Local, Plan, State, Task, Work
from ..named_layers import find_layers, has_head
from ..tree import Tree
from ._own_layers import require_both
from ._traffic import count_models
from ._weights import PLANS, Weights
from .fedavg import fedavg

__all__ = ["fedbabu"]

FAMILY = "own-layers"

BASE = fedavg()


def fedbabu(
    tuning_epochs: Annotated[
        int, "Epochs in which each party trains the last model on its own rows.", AtLeast(1)
    ] = 5,
    head: Annotated[
        str,
        "Layers that are not trained before that: head (what takes the features), a layer's name, "
        "or a kind; several with a + between.",
    ] = "head",
    weights: Weights = "examples",
) -> Algorithm:
    """FedBABU. Oh, Kim, Yun, ICLR 2022: parties train and send the body alone, below a head that
    nobody trains; each fine-tunes the whole model after the last round.

    The head is the one drawn by the seed, so it need not be sent. Gradient, momentum and weight
    decay count for nothing there. The mean is weighted by examples, as printed; the authors' code
    weighs all alike (`weights="uniform"`), on parties of one size. It is measured at home, after
    tuning: finetuned_party_test_accuracy of the last round; before that the model of all is served.

    Examples
    --------
    >>> fedbabu(tuning_epochs=1).settings
    {'finetune': 1}
    """
    return replace(
        BASE,
        name="fedbabu",
        hyper={"head": head},
        init=init,
        plan=PLANS[weights],
        begin=begin,
        direction=direction,
        finish=finish,
        aggregate=aggregate,
        traffic=traffic,
        features=has_head(head),
        settings={"finetune": tuning_epochs},
    )


def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Hyper) -> State:
    """Refuse a head that is all of the model, or nothing of it."""
    words = hyper["head"]
    require_both("fedbabu", f"head={words!r}", find_layers(task, words), models)
    return State(models, buffers)


def begin(task: Task, local: Local) -> Local:
    """Carry which parameters stay."""
    head = find_layers(task, local.hyper["head"]).params
    moves: Tree = {}
    for name, weight in local.params.items():
        if name in head:
            moves[name] = torch.zeros((), dtype=torch.bool, device=weight.device)
    return local._replace(carry={"moves": moves})


def terms(local: Local) -> Affine:
    """Return that the head stays, whatever momentum and weight decay would do."""
    return Affine(moves=local.carry["moves"])


direction = AffineDirection(terms)


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload the body."""
    head = find_layers(task, local.hyper["head"])
    body = local._replace(
        params=leave_out(local.params, head.params),
        buffers=leave_out(local.buffers, head.buffers),
    )
    return BASE.finish(task, body, work)


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper) -> State:
    """Take the mean of the bodies; the head stays, its statistics too."""
    body = replace(
        state,
        models={name: state.models[name] for name in total["models"]},
        buffers={name: state.buffers[name] for name in total["buffers"]},
    )
    mean = BASE.aggregate(body, plan, total, hyper)
    return replace(
        state,
        models=state.models | mean.models,
        buffers=state.buffers | mean.buffers,
    )


def traffic(state: State, plan: Plan, task: Task, hyper: Hyper) -> tuple[Tensor, Tensor]:
    """Count the body each way: the head follows from the seed."""
    head = find_layers(task, hyper["head"])
    body = replace(
        state,
        models=leave_out(state.models, head.params),
        buffers=leave_out(state.buffers, head.buffers),
    )
    return count_models(body, plan, task, hyper)
