"""Normalisation layers stay at home.

State: models and buffers [1, ...] without the normalisation layers; parties.params and
parties.buffers [P, ...], those layers alone.
"""

from dataclasses import replace

import torch
from torch import Tensor

from .. import tree
from ..interface import Algorithm, Hyper, Info, Local, Served, State, Task, UsageError, Work
from ..tree import Tree
from .fedavg import NONE, fedavg

__all__ = ["fedbn"]

BASE = fedavg()


def fedbn() -> Algorithm:
    """FedBN. Li et al., ICLR 2021, Algorithm 1: FedAvg on all but the normalisation layers, which
    each party keeps to itself.

    Kept are parameters and buffers, frozen ones too, of every module whose class has "Norm" in its
    name; the authors' code goes by "bn" in the name of the parameter, which misses some of a
    ResNet's. All parties start from the common model. Each is served the global model with its own
    normalisation layers, so there is no single model; a model without such layers is FedAvg bit for
    bit. A new party has no such layers: it is served the mean of those that others trained.
    """
    return replace(
        BASE,
        name="fedbn",
        init=init,
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
    """Put what is exchanged into models and buffers, and the normalisation layers into parties.

    No entry is in both.
    """
    params = {name: w for name, w in models.items() if task.kinds[name] == "norm"}
    statistics = {name: b for name, b in buffers.items() if task.buffer_kinds[name] == "norm"}
    if models and len(params) == len(models):
        raise UsageError(
            "every parameter of the model belongs to a normalisation layer, so fedbn has nothing "
            "to exchange; take solo"
        )
    own = tree.index({"params": params, "buffers": statistics}, 0)
    parties = tree.repeat(own, len(info.n))
    return State(_without(models, params), _without(buffers, statistics), parties=parties)


def begin(task: Task, local: Local) -> Local:
    params, buffers = local.own["params"], local.own["buffers"]
    return local._replace(params=local.params | params, buffers=local.buffers | buffers)


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload all but the normalisation layers, which are kept."""
    own = {
        "params": {name: local.params[name] for name in local.own["params"]},
        "buffers": {name: local.buffers[name] for name in local.own["buffers"]},
    }
    shared = local._replace(
        params=_without(local.params, own["params"]),
        buffers=_without(local.buffers, own["buffers"]),
    )
    upload, _ = BASE.finish(task, shared, work)
    return upload, own


def serve(state: State, hyper: Hyper = NONE) -> Served:
    """Serve each party a model of its own, or all a single one where nothing is kept."""
    kept = tree.leaves(state.parties)
    if not kept:
        return BASE.serve(state, hyper)
    n_parties = len(kept[0])

    def view_for_all(values: Tree) -> Tree:
        return tree.map(lambda leaf: leaf.expand(n_parties, *leaf.shape[1:]), values)

    return Served(
        models=view_for_all(state.models) | state.parties["params"],
        buffers=view_for_all(state.buffers) | state.parties["buffers"],
        which=torch.arange(n_parties),
    )


def serve_new(state: State, hyper: Hyper = NONE) -> Served:
    """Serve the global model with the mean of the normalisation layers that parties trained."""
    kept = state.parties
    if not tree.leaves(kept):
        return BASE.serve(state, hyper)
    is_trained = _find_trained(kept)

    def average(rows: Tensor) -> Tensor:
        return _average_rows(rows[is_trained])

    return Served(
        models=state.models | tree.map(average, kept["params"]),
        buffers=state.buffers | tree.map(average, kept["buffers"]),
        which=torch.zeros(1, dtype=torch.int64),
    )


def _find_trained(kept: Tree) -> Tensor:
    """Return whose layers were trained, [P] bool; all where they are the same for all.

    The state does not say who was drawn. But all parties start alike, and no two train alike:
    layers that several have are the initial ones. A single party that is left over passes for a
    trained one.
    """
    rows = torch.cat([leaf.reshape(len(leaf), -1) for leaf in tree.leaves(kept)], dim=1)
    _, group, sizes = torch.unique(rows, dim=0, return_inverse=True, return_counts=True)
    is_alone = sizes[group] == 1
    return is_alone if bool(is_alone.any()) else torch.ones_like(is_alone)


def _average_rows(rows: Tensor) -> Tensor:
    """Return the mean over parties, [1, ...]; of whole numbers, counts of batches, the first."""
    if not rows.is_floating_point():
        return rows[:1]
    return rows.double().mean(0, keepdim=True).to(rows.dtype)


def _without(values: Tree, names: Tree) -> Tree:
    return {name: value for name, value in values.items() if name not in names}
