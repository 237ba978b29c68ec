"""The algorithm that the others start from.

State: models and buffers [1, ...]; nothing at the server or the parties.
"""

from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor

from niidpart.renamed import forward_old_names

from .. import tree
from ..directions.affine import Affine, AffineDirection
from ..flat_tree import map_numbers
from ..interface import Above, Algorithm, Hyper, Info, Local, Plan, Served, State, Task, Work
from ..tree import Tree

__all__ = ["fedavg"]

FAMILY = "baseline"

ServerLr = Annotated[
    float,
    "Step of the server towards the mean of the local models; 1 is the mean itself.",
    Above(0),
]

# The default of `hyper` in server functions that read no number, here and in other algorithms:
# users' algorithms written before there was `hyper` call them without it.
NONE: Hyper = {}


def fedavg(server_lr: ServerLr = 1.0) -> Algorithm:
    """FedAvg. McMahan et al., AISTATS 2017, Algorithm 1: the mean of the local models, weighted by
    examples.

    w <- w - server_lr * sum_i p_i (w - y_i) over the cohort, p_i = n_i / n. With server_lr 1 that
    is the mean itself, as in Li et al., ICDE 2022, Algorithm 1 (whose printed step size is already
    contained in the local update).

    Examples
    --------
    >>> fedavg(server_lr=0.5).hyper
    {'server_lr': 0.5}
    """
    return Algorithm(
        name="fedavg",
        hyper={"server_lr": server_lr},
        init=init,
        plan=plan,
        begin=begin,
        direction=direction,
        finish=finish,
        aggregate=aggregate if server_lr == 1 else step_towards_mean,
        serve=serve,
    )


def init(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper = NONE,
) -> State:
    return State(models, buffers)


def plan(state: State, cohort: Tensor, round: int, hyper: Hyper = NONE) -> Plan:
    """Let each party of the cohort train model 0."""
    return Plan(party=cohort, model=torch.zeros_like(cohort))


def begin(task: Task, local: Local) -> Local:
    return local


def terms(local: Local) -> Affine:
    """Return no correction: the step is along the gradient."""
    return Affine()


direction = AffineDirection(terms)


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload the local model, weighted; a party keeps nothing."""
    upload = {"models": weigh(local.params, work), "buffers": weigh(local.buffers, work)}
    return upload, {}


def weigh(values: Tree, work: Work) -> Tree:
    """Return share * value in float64, as a term of the mean of a model.

    float64, so that the sum over jobs is rounded to the type of the weights only once.

    Whole numbers (counts of batches) have no mean: those of the lowest party are taken.
    """

    def weigh_one(value: Tensor) -> Tensor:
        return value.double() * (work.share if value.is_floating_point() else work.first)

    return map_numbers(weigh_one, values)


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper = NONE) -> State:
    """Take the weighted mean of each model that somebody trained; the others stay."""
    trained = torch.unique(plan.model)

    def replace_trained(old: Tensor, mean: Tensor) -> Tensor:
        new = old.clone()
        new[trained] = mean[trained].to(old.dtype)
        return new

    return replace(
        state,
        models=tree.map(replace_trained, state.models, total["models"]),
        buffers=tree.map(replace_trained, state.buffers, total["buffers"]),
    )


def step_towards_mean(state: State, plan: Plan, total: Tree, hyper: Hyper) -> State:
    """Go `server_lr` of the way to the mean, or beyond it. Buffers are averaged."""
    server_lr = hyper["server_lr"]
    mean = aggregate(state, plan, total, hyper)
    if server_lr == 1:
        return mean  # w + (m - w) would round
    models = tree.map(lambda w, m: w + server_lr * (m - w), state.models, mean.models)
    return replace(mean, models=models)


def serve(state: State, hyper: Hyper = NONE) -> Served:
    """Serve model 0 to all."""
    return Served(state.models, state.buffers, which=torch.zeros(1, dtype=torch.int64))


__getattr__ = forward_old_names(__name__, {"weighted": "weigh"})
