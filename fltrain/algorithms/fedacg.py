"""Parties start where the server's momentum will carry the model.

State: models [1, ...], the weights that are sent, ahead of those served; server.mean and server.m
[1, ...], what is served, and the momentum.
"""

from dataclasses import replace
from typing import Annotated

import torch

from .. import tree
from ..directions.affine import Affine, AffineDirection
from ..interface import (
    Algorithm,
    AtLeast,
    Below,
    Hyper,
    Info,
    Local,
    Plan,
    Served,
    State,
    Task,
)
from ..tree import Tree
from ._server import move_to_mean
from ._weights import PLANS, Weights
from .fedavg import NONE, fedavg

__all__ = ["fedacg"]

FAMILY = "direction"

BASE = fedavg()


def fedacg(
    server_momentum: Annotated[
        float,
        "How much of the server's momentum stays each round, and how far ahead parties start.",
        AtLeast(0),
        Below(1),
    ] = 0.85,
    beta: Annotated[
        float, "Weight of the squared distance to the weights received; 0 for none.", AtLeast(0)
    ] = 0.001,
    weights: Weights = "examples",
) -> Algorithm:
    """FedACG. Kim, Kim, Han, CVPR 2024: parties start from w + lam m, where the momentum m of the
    server will carry the model w, and stay near it; lam is `server_momentum`.

    Sent is s = w + lam m. Each party adds beta ||y - s||^2 to its loss, without a half as in the
    authors' code, so that its gradient is 2 beta (y - s). Then m <- lam m + D and w <- w + m, with
    D = sum_i p_i (y_i - s); that is, w becomes the mean of the y_i. m = 0 at the start. w is
    served. Nothing but one model goes each way.

    Both numbers are those of the authors' code. Without both it is FedAvg bit for bit, without the
    momentum FedProx with mu = 2 beta. `weights`: there parties weigh alike; by examples a
    comparison with FedAvg is one of the momentum alone. Buffers have no momentum; in that code
    they have.
    """
    direction = near_start if beta else BASE.direction
    plain = replace(
        BASE, name="fedacg", hyper={"beta": beta}, plan=PLANS[weights], direction=direction
    )
    if server_momentum == 0:
        return plain
    return replace(
        plain,
        hyper={"beta": beta, "server_momentum": server_momentum},
        init=init,
        aggregate=aggregate,
        serve=serve,
    )


def init(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper = NONE,
) -> State:
    server = {"mean": tree.clone(models), "m": tree.zeros_like(models)}
    return State(models, buffers, server=server)


def terms(local: Local) -> Affine:
    """Return 2 beta (y - s)."""
    return Affine(pull=2 * local.hyper["beta"])


near_start = AffineDirection(terms)


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper) -> State:
    """Take the mean of the local models as the new one, and send it ahead."""
    lam = hyper["server_momentum"]
    mean, d = move_to_mean(state, plan, total, hyper)
    m = tree.map(lambda m, d: lam * m + d, state.server["m"], d)
    ahead = tree.map(lambda m: lam * m, m)
    sent = tree.map(torch.add, mean.models, ahead)
    return replace(mean, models=sent, server={"mean": mean.models, "m": m})


def serve(state: State, hyper: Hyper = NONE) -> Served:
    """Serve the mean of the local models, and not what is sent."""
    return BASE.serve(replace(state, models=state.server["mean"]), hyper)
