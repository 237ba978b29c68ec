"""A head for all by the balanced softmax, and one of each party's own on top of it.

State: models and buffers [1, ...], the generic model; parties.params [P, ...], the personal heads;
parties.counts [P, K], training examples of each class. A job trains both heads: the personal one
under the names of the generic one behind `personal.`.
"""

from dataclasses import replace
from typing import Annotated, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from .. import tree
from ..draws import fold
from ..interface import (
    Algorithm,
    Batch,
    Hyper,
    Info,
    Local,
    Out,
    Served,
    State,
    Step,
    Task,
    Work,
)
from ..linear_head import find_linear_head
from ..tree import Tree
from ._class_counts import PLAIN_LABELS
from ._own_layers import view_for_all
from .balanced_softmax import Gamma, weigh_prior
from .fedavg import NONE, fedavg

__all__ = ["fedrod"]

FAMILY = "own-layers"

BASE = fedavg()
PERSONAL = "personal."

PersonalStart = Literal["copy", "zero"]


def fedrod(
    gamma: Gamma = 1.0,
    start: Annotated[
        PersonalStart, "Personal heads begin as the generic one, or as 0: without an effect."
    ] = "copy",
) -> Algorithm:
    """FedRoD. Chen, Chao, ICLR 2022: a generic model of body and head learns by the balanced
    softmax; a personal head of each party learns, on the same features, what is left.

    The generic loss is cross entropy of z_k + gamma log n_k, n_k the party's examples of class k,
    and its gradient alone moves body and generic head: they are those of `balanced-softmax`, but
    where gradients are clipped by their norm, which is that of all heads together. With gamma 0
    they are FedAvg's. The
    personal logits are generic ones + personal head, and their cross entropy moves the personal
    head alone. Served is the generic model; `personal_*` metrics are of the sum of both heads. The
    linear personal head is here, the hypernetwork of the paper is not. Where a personal head begins
    the text leaves open; codes copy the generic one. The loss reported is the sum of both. The last
    layer has to be linear in the features.

    Examples
    --------
    >>> fedrod(start="zero").hyper
    {'gamma': 1.0}
    """
    return replace(
        BASE,
        name="fedrod",
        hyper={"gamma": gamma},
        init=INITS[start],
        begin=begin,
        direction=direction if gamma else direct_plainly,
        finish=finish,
        personal=serve_personal,
        features=True,
        settings={"keep_optimizer": False} | (PLAIN_LABELS if gamma else {}),
    )


def init_by_copy(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Hyper) -> State:
    """Give each party the generic head for its own."""
    weight, bias = _find_linear_head(task, info, models, buffers)
    names = [name for name in (weight, bias) if name]
    head = {name: models[name][0] for name in names}
    counts = info.counts.to(models[weight].device)
    own = {"params": tree.repeat(head, len(info.n)), "counts": counts}
    return State(models, buffers, parties=own)


def init_by_zero(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Hyper) -> State:
    """Give each party a head of zeros."""
    state = init_by_copy(task, info, models, buffers, hyper)
    zeros = tree.zeros_like(state.parties["params"])
    return replace(state, parties=state.parties | {"params": zeros})


INITS = {"copy": init_by_copy, "zero": init_by_zero}


def begin(task: Task, local: Local) -> Local:
    """Train the personal head beside the model."""
    personal = {f"{PERSONAL}{name}": w for name, w in local.own["params"].items()}
    return local._replace(params=local.params | personal)


def direction(task: Task, local: Local, batch: Batch) -> Step:
    """Return the step of both models: neither loss has a gradient at the other's parameters."""
    return _step_both(task, local, batch, weigh_prior(local))


def direct_plainly(task: Task, local: Local, batch: Batch) -> Step:
    """Return the step whose generic loss has no prior: all classes, lacked ones too."""
    return _step_both(task, local, batch, torch.zeros_like(weigh_prior(local)))


def _step_both(task: Task, local: Local, batch: Batch, prior: Tensor) -> Step:
    draws = fold(local.key, batch.step)

    def add_losses(at: Tree) -> tuple[Tensor, Tree]:
        generic = {name: at[name] for name in local.start}
        out = task.forward(generic, local.buffers, batch.x, train=True, key=draws)
        balanced = out._replace(logits=out.logits + prior.to(out.logits.dtype))
        left = out._replace(logits=out.logits.detach() + _apply_head(at, out))
        return task.loss(balanced, batch) + task.loss(left, batch), out.buffers

    grads, loss, buffers = task.differentiate(add_losses, local.params)
    return Step(grads, loss, buffers, local.carry)


def _apply_head(at: Tree, out: Out) -> Tensor:
    """Return what the personal head gives for the features, which it does not move."""
    head = [name for name in at if name.startswith(PERSONAL)]
    weight = next(at[name] for name in head if at[name].dim() == 2)
    bias = next((at[name] for name in head if at[name].dim() == 1), None)
    return F.linear(out.features.flatten(1).detach(), weight, bias)


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload the generic model, and keep the personal head."""
    generic = {name: local.params[name] for name in local.start}
    upload, _ = BASE.finish(task, local._replace(params=generic), work)
    head = {name: local.params[f"{PERSONAL}{name}"] for name in local.own["params"]}
    return upload, {"params": head, "counts": local.own["counts"]}


def serve_personal(state: State, hyper: Hyper = NONE) -> Served:
    """Serve each party the sum of both heads: what is linear adds up."""
    heads = state.parties["params"]
    n_parties = len(tree.leaves(heads)[0])
    both = {name: state.models[name] + head for name, head in heads.items()}
    return Served(
        models=view_for_all(state.models, n_parties) | both,
        buffers=view_for_all(state.buffers, n_parties),
        which=torch.arange(n_parties),
    )


def _find_linear_head(task: Task, info: Info, models: Tree, buffers: Tree) -> tuple[str, str]:
    """Return the names of weight and bias of the last layer, "" for no bias."""
    return find_linear_head(
        task,
        params=tree.index(models, 0),
        buffers=tree.index(buffers, 0),
        shape=info.shape,
        what="fedrod gives each party a second last layer",
    )
