"""Parties look for minima that are flat for all: uphill is where the model came from.

State: with "own", parties.received [P, ...], the weights that each received last, and
parties.has_received [P], 1 from its first round on, else 0; with "sent", server.before [...], the
weights before the last round, broadcast as shared.before. Carried: offset.
"""

from dataclasses import replace
from typing import Annotated, Literal

import torch
from torch import Tensor

from .. import tree
from ..directions.ascent import OffsetDirection, measure_length
from ..interface import Algorithm, Hyper, Info, Local, Plan, State, Task, Work
from ..tree import Tree
from ._weights import PLANS, Weights, weigh_alike
from .fedavg import NONE, ServerLr, fedavg, step_towards_mean
from .fedsam import Rho

__all__ = ["fedlesam"]

FAMILY = "flatness"

BASE = fedavg()


def fedlesam(
    rho: Rho = 0.1,
    before: Annotated[
        Literal["own", "sent"],
        "Where the model was before: the weights that the party received last, which it keeps, or "
        "those of the last round, which the server sends.",
    ] = "own",
    weights: Weights = "examples",
    server_lr: ServerLr = 1.0,
) -> Algorithm:
    """FedLESAM. Fan et al., ICML 2024: FedAvg whose parties step along the gradient at y + e, with
    e = rho (w_old - w) / ||w_old - w||, w the weights received and w_old those received before.

    One gradient a step, as FedAvg. w_old is the model of the party's last round: it keeps it. In
    its first round there is none, and no e. The authors' code takes the step of the server in the
    last round for all parties, `before` "sent": that costs a model more on the way down.

    Faults of that code are left out: it hands each layer one number of the step in place of its
    own, and sums the lengths of the layers where the text has the length of the whole. rho is the
    code's; 0 is FedAvg bit for bit. The variants on FedDyn and SCAFFOLD (FedLESAM-D, -S) are not
    offered.
    """
    plain = replace(fedavg(server_lr), name="fedlesam", plan=PLANS[weights])
    if rho == 0:
        return plain
    algorithm = replace(plain, hyper=plain.hyper | {"rho": rho}, direction=direction)
    if before == "own":
        return replace(algorithm, init=init_own, begin=begin_own, finish=finish_own)
    plan = plan_by_examples if weights == "examples" else plan_uniformly
    return replace(algorithm, init=init_sent, plan=plan, begin=begin_sent, aggregate=aggregate)


def init_own(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper = NONE,
) -> State:
    """Note that no party has received a model yet; until then the start stands there."""
    received = tree.repeat(tree.index(models, 0), len(info.n))
    has_received = tree.leaves(models)[0].new_zeros(len(info.n))
    own = {"received": received, "has_received": has_received}
    return State(models, buffers, parties=own)


def init_sent(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper = NONE,
) -> State:
    return State(models, buffers, server={"before": tree.clone(tree.index(models, 0))})


def plan_by_examples(state: State, cohort: Tensor, round: int, hyper: Hyper = NONE) -> Plan:
    """Broadcast the weights before the last round."""
    plan = BASE.plan(state, cohort, round, hyper)
    return replace(plan, shared={"before": state.server["before"]})


def plan_uniformly(state: State, cohort: Tensor, round: int, hyper: Hyper = NONE) -> Plan:
    return weigh_alike(plan_by_examples(state, cohort, round, hyper))


def begin_own(task: Task, local: Local) -> Local:
    """Carry the offset, which is 0 in a party's first round."""
    way = tree.map(torch.sub, local.own["received"], local.start)
    length = local.hyper["rho"] * local.own["has_received"]
    return _carry_offset(local, way, length)


def begin_sent(task: Task, local: Local) -> Local:
    """Carry the offset, which is 0 in the first round."""
    way = tree.map(torch.sub, local.shared["before"], local.start)
    return _carry_offset(local, way, local.hyper["rho"])


def _carry_offset(local: Local, way: Tree, length: float | Tensor) -> Local:
    per_length = length / measure_length(way)
    return local._replace(carry={"offset": tree.map(lambda d: per_length.to(d.dtype) * d, way)})


def offset(local: Local) -> Tree:
    """Return the offset, a constant of the local training."""
    carried: Tree = local.carry["offset"]
    return carried


direction = OffsetDirection(offset)


def finish_own(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload as FedAvg does; the party keeps the weights that it received."""
    upload, _ = BASE.finish(task, local, work)
    has_received = torch.ones_like(local.own["has_received"])
    return upload, {"received": local.start, "has_received": has_received}


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper) -> State:
    """Step towards the mean model, and keep the one before."""
    stepped = step_towards_mean(state, plan, total, hyper)
    return replace(stepped, server={"before": tree.index(state.models, 0)})
