"""Parties that took more steps do not count for more."""

from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor

from niidpart.errors import UsageError

from .. import tree
from ..interface import Algorithm, Info, Local, Plan, State, Task, Work
from ..tree import Tree
from .fedavg import fedavg, weighted
from .fedprox import direction

__all__ = ["fednova"]

BASE = fedavg()


def fednova(
    server_momentum: Annotated[
        float, "How much of the server's velocity stays each round, at least 0 and below 1."
    ] = 0.0,
    mu: Annotated[
        float,
        "Weight of FedProx's pull besides, at least 0; above 0 it sets momentum to 0, and lr x mu must be below 1.",
    ] = 0.0,
) -> Algorithm:
    """FedNova. Wang et al., NeurIPS 2020: w <- w - tau_eff sum_i p_i d_i, with d_i = (w - y_i) / a_i and tau_eff = sum_i p_i a_i.

    a_i is the weight of a constant gradient in w - y_i, in learning rates: the number of steps tau_i without momentum, `effective_steps` with it.
    (Li et al., ICDE 2022, Algorithm 1 prints tau_i and one more learning rate; their code has a_i, and w - y_i contains the learning rate.)
    mu: FedProx's term besides; then momentum is 0, a_i = sum over k < tau_i of (1 - lr mu)^k, and tau_eff = sum_i p_i tau_i, as in the original code.
    server_momentum: v <- server_momentum v + tau_eff sum_i p_i d_i / lr; w <- w - lr v (`gmf` of the original code).

    With a fixed number of epochs tau_i grows with n_i, and the weights p_i tau_eff / a_i of the parties' own steps w - y_i sum to about
    P sum_i p_i^2: 1 for parties of equal size, a median of 2.3 for ten whose sizes come from Dir(0.5). Under quantity skew the server so
    goes beyond the mean by that factor, and may diverge where FedAvg does not. This is the method; nothing here mends it.
    """
    if not 0 <= server_momentum < 1:
        raise UsageError(f"server_momentum is {server_momentum}; it must be at least 0 and below 1")
    if not mu >= 0:
        raise UsageError(f"mu is {mu}; it must be at least 0")

    def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Tree) -> State:
        """server: the velocity, where there is momentum."""
        if info.lr * mu >= 1:
            raise UsageError(
                f"lr {info.lr} x mu {mu} is {info.lr * mu:.3g}; FedNova's a_i needs less than 1: lower --lr below {1 / mu:.3g}, or --mu"
            )
        velocity = tree.map(lambda w: torch.zeros_like(w, dtype=torch.float64), models)
        return State(models, buffers, server={"velocity": velocity} if server_momentum else {})

    def moving(state: State, plan: Plan, total: Tree, hyper: Tree) -> State:
        lr = total["lr"]
        velocity = tree.map(
            lambda v, d: server_momentum * v + d * total["steps"] / lr,
            state.server["velocity"],
            total["directions"],
        )
        models = tree.map(lambda w, v: w.double() - lr * v, state.models, velocity)
        return replace(
            BASE.aggregate(state, plan, {"models": models, "buffers": total["buffers"]}, hyper),
            server={"velocity": velocity},
        )

    algorithm = replace(
        BASE,
        name="fednova",
        init=init,
        finish=finish,
        aggregate=moving if server_momentum else aggregate,
        traffic=traffic,
    )
    if mu == 0:
        return algorithm
    return replace(
        algorithm,
        hyper={"mu": mu},
        direction=direction,
        finish=finish_prox,
        settings={"momentum": 0.0},
    )


def effective_steps(steps: float | Tensor, momentum: float | Tensor) -> float | Tensor:
    """a: SGD with momentum rho, started at rest, moves by lr a g in `steps` steps under a constant gradient g.

    [tau - rho (1 - rho^tau) / (1 - rho)] / (1 - rho): the sum of the recursion k <- rho k + 1. tau itself without momentum. Below 1 only.
    """
    return (steps - momentum * (1 - momentum**steps) / (1 - momentum)) / (1 - momentum)


def effective_steps_prox(steps: float | Tensor, pull: float | Tensor) -> Tensor:
    """The sum of (1 - pull)^k over k < steps, float64; pull = lr mu > 0. Without loss of digits where pull is small."""
    x = _double(pull)
    small = x.clamp(max=0.5)  # log1p needs x below 1; the printed form is exact enough from 0.5 on
    return torch.where(
        x > 0.5, (1 - (1 - x) ** steps) / x, -torch.expm1(steps * torch.log1p(-small)) / small
    )


def _double(value: float | Tensor) -> Tensor:
    """A tensor of no axis, float64. `torch.as_tensor` would not take a tensor of many jobs at once."""
    return value.double() if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64)


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    a = effective_steps(work.steps, work.momentum)
    return upload(local, work, a, a), {}


def finish_prox(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    return upload(
        local, work, effective_steps_prox(work.steps, work.lr * local.hyper["mu"]), work.steps
    ), {}


def upload(local: Local, work: Work, a: float | Tensor, counted: float | Tensor) -> Tree:
    """p_i d_i, p_i times the steps counted in tau_eff, and the learning rate, which the server knows anyway."""

    def number(value: float | Tensor) -> Tensor:
        return _double(work.share * value).to(device)

    device = tree.leaves(local.params)[0].device
    directions = tree.map(
        lambda w, y: (w.double() - y.double()) * (work.share / a), local.start, local.params
    )
    return {
        "directions": directions,
        "buffers": weighted(local.buffers, work),
        "steps": number(counted),
        "lr": number(work.lr),
    }


def aggregate(state: State, plan: Plan, total: Tree, hyper: Tree) -> State:
    """total["steps"] is tau_eff [1]: there is one model."""
    models = tree.map(
        lambda w, d: w.double() - d * total["steps"], state.models, total["directions"]
    )
    return BASE.aggregate(state, plan, {"models": models, "buffers": total["buffers"]}, hyper)


def traffic(state: State, plan: Plan, task: Task, hyper: Tree) -> tuple[Tensor, Tensor]:
    """One model each way, and the number a_i (4 bytes) up."""
    model = tree.nbytes(state.models) + tree.nbytes(state.buffers)
    return torch.full_like(plan.party, model), torch.full_like(plan.party, model + 4)
