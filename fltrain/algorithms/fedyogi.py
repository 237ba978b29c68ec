"""Yogi at the server."""

from ..interface import Algorithm
from ._server import AdaptiveLr, Beta1, Beta2, Tau, adaptive

__all__ = ["fedyogi"]


def fedyogi(
    server_lr: AdaptiveLr = 0.01, beta1: Beta1 = 0.9, beta2: Beta2 = 0.99, tau: Tau = 1e-3
) -> Algorithm:
    """FedYogi: FedAvg whose server steps like Yogi. Reddi et al., ICLR 2021, Algorithm 2.

    v <- v - (1 - beta2) D^2 sign(v - D^2), so that v falls no faster than it rises; the rest as in FedAdam.
    """
    return adaptive(
        "fedyogi",
        lambda v, d: v - (1 - beta2) * d.square() * (v - d.square()).sign(),
        server_lr,
        beta1,
        tau,
        beta2,
    )
