"""Prototypes travel, models do not.

State: models and buffers stay the common start, one of each shape of model; parties.params and
parties.buffers [P, ...], the model of each party; server.prototypes [K, D], the mean features of
each class; server.known [K], 1 for classes that have one, else 0. Sent: shared.prototypes,
shared.known.
Carried: sums [K, D] and counts [K], of features by class in the epoch that runs; epoch.
"""

from dataclasses import replace
from typing import Annotated, Literal

import torch
from torch import Tensor

from .. import tree
from ..draws import fold
from ..interface import (
    Algorithm,
    AtLeast,
    Batch,
    Hyper,
    Info,
    Local,
    Plan,
    State,
    Step,
    Task,
    UsageError,
    Work,
)
from ..tree import Tree
from .fedavg import NONE, fedavg
from .solo import begin as begin_solo
from .solo import init as init_solo
from .solo import serve as serve_own
from .solo import solo

__all__ = ["fedproto"]

FAMILY = "features"

BASE = fedavg()

PrototypeWeights = Literal["uniform", "examples"]


def fedproto(
    lam: Annotated[float, "Weight of the distance to the prototypes; 0 is SOLO.", AtLeast(0)] = 1.0,
    prototype_weights: Annotated[
        PrototypeWeights,
        "Prototypes of a class weigh all alike in their mean, or by the examples that they are of.",
    ] = "uniform",
) -> Algorithm:
    """FedProto. Tan et al., AAAI 2022: parties train models of their own, and exchange the mean
    features of each class.

    Adds lam x the mean over examples and features of (z - prototype of the class)^2 to the loss,
    for classes that have a prototype: the authors' code, by which lam was chosen; the text sums
    over classes the distance of the party's mean from the prototype. A party's prototype is the
    mean of the features as they were in training, over the last epoch, as in that code; the text
    does not say under which weights. The mean over parties is plain, as in that code; the text
    weighs by examples (`prototype_weights="examples"`). A class that no party of a round holds
    keeps its prototype. Models answer by their last layer. Those of parties may differ (`--model
    wide.py:net+narrow.py:net`) as long as their features are of one length.

    Examples
    --------
    >>> fedproto(lam=0.1).hyper
    {'lam': 0.1}
    """
    if lam == 0:
        return replace(solo(), name="fedproto")
    return replace(
        BASE,
        name="fedproto",
        hyper={"lam": lam},
        init=init,
        plan=plan,
        begin=begin,
        direction=direction,
        finish=FINISHES[prototype_weights],
        aggregate=aggregate,
        serve=serve_own,
        traffic=traffic,
        features=True,
        unlike_models=True,
    )


def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Hyper) -> State:
    """Give each party the common start, and no class a prototype.

    UsageError where models lack features, or have unlike numbers of them.
    """
    if task.features_fault:
        raise UsageError(
            f"FedProto reads features, the input of the last layer: {task.features_fault}. Or "
            "choose a model of two stages or more (--model mlp, cnn, ...)"
        )
    state = init_solo(task, info, models, buffers, hyper)
    each = _compute_features(task, info, models, buffers)
    lengths = [features.shape[1] for features in each]
    if len(set(lengths)) > 1:
        raise UsageError(
            "FedProto averages features over parties, so they must be of one length; those of the "
            f"models have {', '.join(map(str, lengths))} numbers, in the order of --model. Choose "
            "models whose last layers take as many, or write such (file.py:function)"
        )
    features, n_classes = each[0], info.counts.shape[1]
    prototypes = features.new_zeros(n_classes, lengths[0])
    server = {"prototypes": prototypes, "known": features.new_zeros(n_classes)}
    return replace(state, server=server)


def _compute_features(task: Task, info: Info, models: Tree, buffers: Tree) -> list[Tensor]:
    """Return the features [2, D] that each of the models has of zeros."""
    weights = tree.leaves(models)
    kinds = {weight.dtype for weight in weights}
    kind = kinds.pop() if len(kinds) == 1 else torch.float32  # of several models: that of examples
    x = torch.zeros(2, *info.shape, dtype=kind, device=weights[0].device)
    each = []
    for number in range(len(weights[0])):
        model, its_buffers = tree.index(models, number), tree.index(buffers, number)
        out = task.forward(model, its_buffers, x, train=False)
        each.append(out.features.detach().flatten(1))
    return each


def plan(state: State, cohort: Tensor, round: int, hyper: Hyper = NONE) -> Plan:
    """Send the prototypes to all."""
    return replace(BASE.plan(state, cohort, round, hyper), shared=state.server)


def begin(task: Task, local: Local) -> Local:
    """Train the party's own model, with no features counted yet."""
    prototypes, known = local.shared["prototypes"], local.shared["known"]
    epoch = torch.zeros_like(known[0])
    carry = {
        "sums": torch.zeros_like(prototypes),
        "counts": torch.zeros_like(known),
        "epoch": epoch,
    }
    return begin_solo(task, local)._replace(carry=carry)


def direction(task: Task, local: Local, batch: Batch) -> Step:
    """Return the step along the gradient of the loss and the distance; count the features."""
    draws = fold(local.key, batch.step)
    prototypes, known = local.shared["prototypes"], local.shared["known"]

    def add_distance(at: Tree) -> tuple[Tensor, tuple[Tensor, Tree]]:
        out = task.forward(at, local.buffers, batch.x, train=True, key=draws)
        features = out.features.flatten(1)
        gaps = (features - prototypes[batch.y]) * known[batch.y].unsqueeze(1)
        each = gaps.square().mean(1)
        if batch.mask is None:
            mean = each.mean()
        else:
            mean = (each * batch.mask).sum() / batch.mask.sum().clamp(min=1)
        loss = task.loss(out, batch) + local.hyper["lam"] * mean
        return loss, (features.detach(), out.buffers)

    grads, loss, (features, buffers) = task.differentiate(add_distance, local.params)
    return Step(grads, loss, buffers, _count_features(local.carry, features, batch))


def _count_features(carry: Tree, features: Tensor, batch: Batch) -> Tree:
    """Return what is carried on: a new epoch begins from nothing."""
    classes = torch.arange(len(carry["counts"]), device=features.device)
    is_of = (batch.y.unsqueeze(1) == classes).to(features.dtype)  # [B, K]
    if batch.mask is not None:
        is_of = is_of * batch.mask.to(features.dtype).unsqueeze(1)
    epoch = torch.zeros_like(carry["epoch"]) + batch.epoch
    stays = (epoch == carry["epoch"]).to(features.dtype)
    return {
        "sums": stays * carry["sums"] + is_of.T @ features,
        "counts": stays * carry["counts"] + is_of.sum(0),
        "epoch": epoch,
    }


def finish_uniformly(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload the prototypes of the classes that the party has, each with weight 1."""
    return _upload(local, (local.carry["counts"] > 0).double())


def finish_by_examples(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload the prototypes weighted by the examples that they are of."""
    return _upload(local, local.carry["counts"].double())


FINISHES = {"uniform": finish_uniformly, "examples": finish_by_examples}


def _upload(local: Local, weights: Tensor) -> tuple[Tree, Tree]:
    counts = local.carry["counts"].double().clamp(min=1)
    means = local.carry["sums"].double() / counts.unsqueeze(1)
    upload = {"prototypes": weights.unsqueeze(1) * means, "weights": weights}
    return upload, {"params": local.params, "buffers": local.buffers}


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper = NONE) -> State:
    """Take the mean of the prototypes of each class that somebody sent; the others stay."""
    old = state.server["prototypes"]
    weights = total["weights"][0].unsqueeze(1)
    means = total["prototypes"][0] / weights.clamp(min=1)
    is_sent = weights > 0
    prototypes = torch.where(is_sent, means.to(old.dtype), old)
    known = torch.where(is_sent.squeeze(1), 1.0, state.server["known"]).to(old.dtype)
    return replace(state, server={"prototypes": prototypes, "known": known})


def traffic(state: State, plan: Plan, task: Task, hyper: Hyper) -> tuple[Tensor, Tensor]:
    """Count prototypes, and which there are, each way: no model is sent."""
    moved = torch.full_like(plan.party, tree.nbytes(state.server))
    return moved, moved
