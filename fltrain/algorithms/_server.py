"""What the server optimisers share: the mean of the local models is not taken as it is, it gives the direction of a step."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor

from niidpart.errors import UsageError

from .. import tree
from ..interface import Algorithm, Info, Plan, State, Task
from ..tree import Tree
from .fedavg import fedavg

Step = Callable[
    [Tree, Tree], tuple[Tree, Tree]
]  # (server, D) -> (server, what is added to the models)

AdaptiveLr = Annotated[
    float, "Step of the server, by which m / (sqrt(v) + tau) is multiplied; above 0."
]
Beta1 = Annotated[
    float,
    "How much of the server's m stays each round, at least 0 and below 1; with 0 m is the round's own direction.",
]
Beta2 = Annotated[
    float,
    "How slowly the server's v follows the squared direction: the nearer to 1 the slower; at least 0 and below 1.",
]
Tau = Annotated[
    float,
    "Added to sqrt(v), above 0: the larger, the less adaptive is the server's step. v starts at tau^2.",
]


def with_server_step(name: str, start: Callable[[Tree], Tree], step: Step) -> Algorithm:
    """FedAvg with `step` instead of the move to the mean. D = sum_i p_i (y_i - w) [M, ...] points downhill already.

    start(models): what the server holds before the first round, in `State.server`. Buffers are averaged and never stepped.
    """
    base = fedavg()

    def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Tree) -> State:
        return State(models, buffers, start(models))

    def aggregate(state: State, plan: Plan, total: Tree, hyper: Tree) -> State:
        mean = base.aggregate(state, plan, total, hyper)
        server, move = step(state.server, tree.map(torch.sub, mean.models, state.models))
        return replace(mean, models=tree.map(torch.add, state.models, move), server=server)

    return replace(base, name=name, init=init, aggregate=aggregate)


def adaptive(
    name: str,
    second: Callable[[Tensor, Tensor], Tensor],
    server_lr: float,
    beta1: float,
    tau: float,
    beta2: float = 0.0,
) -> Algorithm:
    """w <- w + server_lr * m / (sqrt(v) + tau), m <- beta1 m + (1 - beta1) D, v <- second(v, D); m starts at 0, v at tau^2, no bias correction.

    Reddi et al., ICLR 2021, Algorithm 2. Operations are by element. Where beta1 is 0, m is D and is not kept.
    """
    above_zero("server_lr", server_lr)
    above_zero("tau", tau)
    below_one("beta1", beta1)
    below_one("beta2", beta2)

    def start(models: Tree) -> Tree:
        v = tree.map(lambda w: torch.full_like(w, tau**2), models)
        return {"m": tree.zeros_like(models), "v": v} if beta1 else {"v": v}

    def step(server: Tree, d: Tree) -> tuple[Tree, Tree]:
        m = tree.map(lambda m, d: beta1 * m + (1 - beta1) * d, server["m"], d) if beta1 else d
        v = tree.map(second, server["v"], d)
        move = tree.map(lambda m, v: server_lr * m / (v.sqrt() + tau), m, v)
        return ({"m": m, "v": v} if beta1 else {"v": v}), move

    return with_server_step(name, start, step)


def above_zero(name: str, value: float) -> None:
    if not value > 0:
        raise UsageError(f"{name} is {value}; it must be above 0")


def below_one(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise UsageError(f"{name} is {value}; it must be at least 0 and below 1")
