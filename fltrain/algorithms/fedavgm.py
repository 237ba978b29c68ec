"""Momentum at the server."""

from dataclasses import replace
from typing import Annotated

from .. import tree
from ..interface import Algorithm
from ..tree import Tree
from ._server import above_zero, below_one, with_server_step
from .fedavg import fedavg

__all__ = ["fedavgm"]


def fedavgm(
    server_momentum: Annotated[
        float,
        "How much of the server's momentum stays each round, at least 0 and below 1; 0 is FedAvg.",
    ] = 0.9,
    server_lr: Annotated[
        float, "Step of the server along its momentum, above 0; 1 in the paper."
    ] = 1.0,
) -> Algorithm:
    """FedAvgM: FedAvg whose server steps with momentum. Hsu, Qi, Brown 2019, "Measuring the effects of non-identical data distribution".

    m <- server_momentum * m + D, w <- w + server_lr * m, with D = sum_i p_i (y_i - w) and m = 0 at the start.
    server_momentum 0 is FedAvg bit for bit.
    """
    above_zero("server_lr", server_lr)
    below_one("server_momentum", server_momentum)
    if server_momentum == 0:
        return replace(fedavg(server_lr), name="fedavgm")

    def start(models: Tree) -> Tree:
        return {"m": tree.zeros_like(models)}

    def step(server: Tree, d: Tree) -> tuple[Tree, Tree]:
        m = tree.map(lambda m, d: server_momentum * m + d, server["m"], d)
        return {"m": m}, tree.map(lambda m: server_lr * m, m)

    return with_server_step("fedavgm", start, step)
