"""Each party's loss is bent so that its minimum becomes that of all."""

from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor

from niidpart.errors import UsageError

from .. import tree
from ..affine import Affine, Corrected
from ..interface import Algorithm, Info, Local, Plan, Served, State, Task, Work
from ..tree import Tree
from .fedavg import fedavg

__all__ = ["feddyn"]

BASE = fedavg()


def feddyn(
    alpha: Annotated[float, "Weight of the dynamic regularisation, above 0."] = 0.01,
) -> Algorithm:
    """FedDyn. Acar et al., ICLR 2021, Algorithm 1: dynamic regularisation, by a memory h_i [P, ...] of what each party moved.

    Party: minimises f_i(y) + (alpha/2) ||y - w||^2 + alpha <y, h_i>, that is, steps along g + alpha (y - w + h_i); then h_i <- h_i + y_i - w.
    Server: w <- mean over the cohort of y_i + (1/P) sum over all parties of h_i. h_i = 0 at the start. The paper's gradient memory of party i is
    -alpha h_i, and its server's h is -alpha times the mean of h_i.

    Evaluated is the mean of the y_i, as in the authors' code, not w. Means weigh parties equally, as the sum of h_i demands. The authors' code
    scales alpha by each party's size and clips gradients; neither is in the paper, and neither is done. Only parameters have an h.
    """
    if not alpha > 0:
        raise UsageError(
            f"alpha is {alpha}; it must be above 0. FedDyn with 0 is not FedAvg, its server still extrapolates; for that take fedavg"
        )
    return replace(
        BASE,
        name="feddyn",
        hyper={"alpha": alpha},
        init=init,
        plan=plan,
        direction=Corrected(terms),
        finish=finish,
        aggregate=aggregate,
        serve=serve,
    )


def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Tree) -> State:
    return State(
        models,
        buffers,
        {"mean": tree.clone(models)},
        {"h": tree.repeat(tree.zeros_like(tree.index(models, 0)), len(info.n))},
    )


def plan(state: State, cohort: Tensor, round: int, hyper: Tree) -> Plan:
    return Plan(
        cohort, torch.zeros_like(cohort), weight=torch.ones(len(cohort), dtype=torch.float64)
    )


def terms(local: Local) -> Affine:
    """alpha (y - w) + alpha h."""
    alpha = local.hyper["alpha"]
    return Affine(pull=alpha, add=tree.map(lambda h: alpha * h, local.own["h"]))


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    upload, _ = BASE.finish(task, local, work)
    return upload, {
        "h": tree.map(lambda h, y, w: h + (y - w), local.own["h"], local.params, local.start)
    }


def aggregate(state: State, plan: Plan, total: Tree, hyper: Tree) -> State:
    """state.parties holds the h_i of this round already."""
    mean = BASE.aggregate(state, plan, total, hyper)
    models = tree.map(
        lambda w, y, h: (y + h.mean(0, dtype=torch.float64)).to(w.dtype),
        state.models,
        total["models"],
        state.parties["h"],
    )
    return replace(mean, models=models, server={"mean": mean.models})


def serve(state: State, hyper: Tree) -> Served:
    return Served(state.server["mean"], state.buffers, torch.zeros(1, dtype=torch.int64))
