"""Layers that stay at the parties; the others are FedAvg's.

State: models and buffers [1, ...] without these layers; parties.params and parties.buffers
[P, ...], these layers alone. So what is sent is what `models` holds.
"""

import torch
from torch import Tensor

from .. import tree
from ..flat_tree import leave_out
from ..interface import Hyper, Info, Local, Served, State, Task, UsageError, Work
from ..named_layers import NamedLayers
from ..tree import Tree
from .fedavg import NONE, fedavg

BASE = fedavg()


def part_state(own: NamedLayers, info: Info, models: Tree, buffers: Tree) -> State:
    """Return the state in which these layers are the parties', who begin alike.

    No entry is in both parts.
    """
    params = {name: w for name, w in models.items() if name in own.params}
    statistics = {name: b for name, b in buffers.items() if name in own.buffers}
    kept = tree.index({"params": params, "buffers": statistics}, 0)
    parties = tree.repeat(kept, len(info.n))
    return State(leave_out(models, params), leave_out(buffers, statistics), parties=parties)


def invert(own: NamedLayers, models: Tree, buffers: Tree) -> NamedLayers:
    """Return all that belongs to the other layers."""
    params = frozenset(models) - own.params
    return NamedLayers(params, frozenset(buffers) - own.buffers)


def require_both(name: str, words: str, own: NamedLayers, models: Tree) -> None:
    """Raise UsageError where the parties would keep all that is trained, or nothing of it.

    name: of the algorithm; words: what was asked for.
    """
    kept = own.params & models.keys()
    if models and len(kept) == len(models):
        raise UsageError(
            f"{words} leaves the parties of {name} nothing to exchange: all {len(models)} "
            "parameters of the model would be their own; name fewer layers, or take solo"
        )
    if not kept:
        raise UsageError(
            f"{words} leaves the parties of {name} nothing of their own: none of the "
            f"{len(models)} parameters that are trained; name other layers, or take fedavg"
        )


def begin(task: Task, local: Local) -> Local:
    """Put the party's own layers into the model received."""
    params, buffers = local.own["params"], local.own["buffers"]
    if not params and not buffers:
        return local
    return local._replace(params=local.params | params, buffers=local.buffers | buffers)


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload all but the party's own layers, which are kept."""
    own = {
        "params": {name: local.params[name] for name in local.own["params"]},
        "buffers": {name: local.buffers[name] for name in local.own["buffers"]},
    }
    shared = local._replace(
        params=leave_out(local.params, own["params"]),
        buffers=leave_out(local.buffers, own["buffers"]),
    )
    upload, _ = BASE.finish(task, shared, work)
    return upload, own


def serve(state: State, hyper: Hyper = NONE) -> Served:
    """Serve each party a model of its own, or all a single one where nothing is kept."""
    kept = tree.leaves(state.parties)
    if not kept:
        return BASE.serve(state, hyper)
    n_parties = len(kept[0])
    return Served(
        models=view_for_all(state.models, n_parties) | state.parties["params"],
        buffers=view_for_all(state.buffers, n_parties) | state.parties["buffers"],
        which=torch.arange(n_parties),
    )


def view_for_all(values: Tree, n_parties: int) -> Tree:
    """Return [P, ...] views of [1, ...]: each party's without a copy."""
    return tree.map(lambda leaf: leaf.expand(n_parties, *leaf.shape[1:]), values)


def serve_new(state: State, hyper: Hyper = NONE) -> Served:
    """Serve the global model with the mean of the layers that parties trained."""
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
