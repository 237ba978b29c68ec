"""Normalisation layers stay at home.

State: models and buffers [1, ...] without the normalisation layers; parties.params and
parties.buffers [P, ...], those layers alone.
"""

from dataclasses import replace

from ..interface import Algorithm, Hyper, Info, State, Task, UsageError
from ..named_layers import find_kind
from ..tree import Tree
from ._own_layers import begin, finish, part_state, serve, serve_new
from ._weights import PLANS, Weights
from .fedavg import NONE, fedavg

__all__ = ["fedbn"]

FAMILY = "own-layers"


def fedbn(weights: Weights = "examples") -> Algorithm:
    """FedBN. Li et al., ICLR 2021, Algorithm 1: FedAvg on all but the normalisation layers, which
    each party keeps to itself.

    Kept are parameters and buffers, frozen ones too, of every module whose class has "Norm" in its
    name; the authors' code goes by "bn" in the name of the parameter, which misses some of a
    ResNet's. All parties start from the common model. Each is served the global model with its own
    normalisation layers, so there is no single model; a model without such layers is FedAvg bit for
    bit. A new party has no such layers: it is served the mean of those that others trained. The
    mean is by examples, as FedAvg's; the authors' code weighs all alike (`weights` is "uniform").
    """
    return replace(
        fedavg(),
        name="fedbn",
        init=init,
        plan=PLANS[weights],
        begin=begin,
        finish=finish,
        serve=serve,
        serve_new=serve_new,
    )


def init(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper = NONE,
) -> State:
    """Put what is exchanged into models and buffers, and the normalisation layers into parties."""
    norms = find_kind(task, "norm")
    if models and norms.params >= models.keys():
        raise UsageError(
            "every parameter of the model belongs to a normalisation layer, so fedbn has nothing "
            "to exchange; take solo"
        )
    return part_state(norms, info, models, buffers)
