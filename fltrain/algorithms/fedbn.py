"""Normalisation layers stay at home."""

from dataclasses import replace

import torch

from niidpart.errors import UsageError

from .. import tree
from ..interface import Algorithm, Info, Local, Served, State, Task, Work
from ..tree import Tree
from .fedavg import fedavg

__all__ = ["fedbn"]

BASE = fedavg()


def fedbn() -> Algorithm:
    """FedBN. Li et al., ICLR 2021, Algorithm 1: FedAvg on all but the normalisation layers, which each party keeps to itself.

    Kept are parameters and buffers, frozen ones too, of every module whose class has "Norm" in its name; the authors' code goes by "bn" in the
    name of the parameter, which misses some of a ResNet's. All parties start from the common model. Each is served the global model with
    its own normalisation layers, so there is no single model; a model without such layers is FedAvg bit for bit.
    """
    return replace(BASE, name="fedbn", init=init, begin=begin, finish=finish, serve=serve)


def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Tree) -> State:
    """What is exchanged stands in models and buffers, the normalisation layers in parties: no entry is in both."""
    kept = {
        "params": {name: w for name, w in models.items() if task.kinds[name] == "norm"},
        "buffers": {name: b for name, b in buffers.items() if task.buffer_kinds[name] == "norm"},
    }
    if models and len(kept["params"]) == len(models):
        raise UsageError(
            "every parameter of the model belongs to a normalisation layer, so fedbn has nothing to exchange; take solo"
        )
    parties = tree.map(lambda leaf: leaf.repeat(len(info.n), *[1] * (leaf.dim() - 1)), kept)
    return State(
        _without(models, kept["params"]), _without(buffers, kept["buffers"]), parties=parties
    )


def begin(task: Task, local: Local) -> Local:
    return local._replace(
        params=local.params | local.own["params"], buffers=local.buffers | local.own["buffers"]
    )


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """The upload has no entry of a normalisation layer."""
    own = {
        "params": {k: local.params[k] for k in local.own["params"]},
        "buffers": {k: local.buffers[k] for k in local.own["buffers"]},
    }
    shared = local._replace(
        params=_without(local.params, own["params"]),
        buffers=_without(local.buffers, own["buffers"]),
    )
    return BASE.finish(task, shared, work)[0], own


def serve(state: State, hyper: Tree) -> Served:
    """One model for each party; a single one where nothing is kept."""
    kept = tree.leaves(state.parties)
    if not kept:
        return BASE.serve(state, hyper)
    P = len(kept[0])
    models, buffers = (
        tree.map(lambda leaf: leaf.expand(P, *leaf.shape[1:]), part)
        for part in (state.models, state.buffers)
    )
    return Served(
        models | state.parties["params"], buffers | state.parties["buffers"], torch.arange(P)
    )


def _without(values: Tree, names: Tree) -> Tree:
    return {name: value for name, value in values.items() if name not in names}
