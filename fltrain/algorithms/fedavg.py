"""The algorithm that the others start from."""

from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor

from niidpart.errors import UsageError

from .. import tree
from ..affine import Affine, Corrected
from ..interface import Algorithm, Info, Local, Plan, Served, State, Task, Work
from ..tree import Tree

__all__ = ["fedavg"]

ServerLr = Annotated[
    float, "Step of the server towards the mean of the local models, above 0; 1 is the mean itself."
]


def fedavg(server_lr: ServerLr = 1.0) -> Algorithm:
    """FedAvg. McMahan et al., AISTATS 2017, Algorithm 1: the mean of the local models, weighted by examples.

    w <- w - server_lr * sum_i p_i (w - y_i) over the cohort, p_i = n_i / n. With server_lr 1 that is the mean itself, as in Li et al.,
    ICDE 2022, Algorithm 1 (whose printed step size is already contained in the local update).
    """
    if not server_lr > 0:
        raise UsageError(f"server_lr is {server_lr}; it must be above 0")
    algorithm = Algorithm("fedavg", init, plan, begin, direction, finish, aggregate, serve)
    if server_lr == 1:
        return algorithm

    def towards_mean(state: State, plan: Plan, total: Tree, hyper: Tree) -> State:
        mean = aggregate(state, plan, total, hyper)
        return replace(
            mean, models=tree.map(lambda w, m: w + server_lr * (m - w), state.models, mean.models)
        )

    return replace(algorithm, aggregate=towards_mean)


def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Tree) -> State:
    return State(models, buffers)


def plan(state: State, cohort: Tensor, round: int, hyper: Tree) -> Plan:
    """Each party of the cohort trains model 0."""
    return Plan(party=cohort, model=torch.zeros_like(cohort))


def begin(task: Task, local: Local) -> Local:
    return local


direction = Corrected(lambda local: Affine())


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """The local model, weighted; a party keeps nothing."""
    return {"models": weighted(local.params, work), "buffers": weighted(local.buffers, work)}, {}


def weighted(values: Tree, work: Work) -> Tree:
    """share * value in float64, so that the sum over jobs is rounded once. Whole numbers (counts of batches) are those of the lowest party."""
    return tree.map(
        lambda v: v.double() * (work.share if v.is_floating_point() else work.first), values
    )


def aggregate(state: State, plan: Plan, total: Tree, hyper: Tree) -> State:
    """The weighted mean of each model that somebody trained; the others stay as they are."""
    trained = torch.unique(plan.model)

    def mean(old: Tensor, new: Tensor) -> Tensor:
        out = old.clone()
        out[trained] = new[trained].to(old.dtype)
        return out

    return replace(
        state,
        models=tree.map(mean, state.models, total["models"]),
        buffers=tree.map(mean, state.buffers, total["buffers"]),
    )


def serve(state: State, hyper: Tree) -> Served:
    return Served(state.models, state.buffers, torch.zeros(1, dtype=torch.int64))
