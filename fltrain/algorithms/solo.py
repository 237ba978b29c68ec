"""Nobody exchanges anything.

State: parties.params and parties.buffers [P, ...], the model of each party; models and buffers stay
the common start, one of each shape of model.
"""

from dataclasses import replace

import torch
from torch import Tensor

from .. import tree
from ..interface import Algorithm, Hyper, Info, Local, Plan, Served, State, Task, Work
from ..tree import Tree
from .fedavg import NONE, fedavg

__all__ = ["solo"]

FAMILY = "baseline"


def solo() -> Algorithm:
    """SOLO: each party trains a model of its own from the common start, and none is exchanged.
    Wang, Wang, Pei, ICMLC 2024, section 4.1.

    Test accuracy is the mean over the parties' models on the global test set. Momentum starts at
    rest each round, as in FedAvg, so that with one party the two are the same bit for bit.
    """
    return replace(
        fedavg(),
        name="solo",
        init=init,
        begin=begin,
        finish=finish,
        aggregate=aggregate,
        serve=serve,
        traffic=traffic,
        unlike_models=True,
    )


def init(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper = NONE,
) -> State:
    """Give each party the common start as its own model: that of its shape."""
    start = {"params": models, "buffers": buffers}
    if info.model is None:
        return State(models, buffers, parties=tree.repeat(tree.index(start, 0), len(info.n)))
    return State(models, buffers, parties=tree.map(lambda rows: rows[info.model], start))


def begin(task: Task, local: Local) -> Local:
    return local._replace(params=local.own["params"], buffers=local.own["buffers"])


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    return {}, {"params": local.params, "buffers": local.buffers}


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper = NONE) -> State:
    return state


def serve(state: State, hyper: Hyper = NONE) -> Served:
    """Serve each party its own model."""
    own = state.parties
    n_parties = len(tree.leaves(own)[0])
    return Served(own["params"], own["buffers"], which=torch.arange(n_parties))


def traffic(state: State, plan: Plan, task: Task, hyper: Hyper = NONE) -> tuple[Tensor, Tensor]:
    return torch.zeros_like(plan.party), torch.zeros_like(plan.party)
