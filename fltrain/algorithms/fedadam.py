"""Adam at the server."""

from ..interface import Algorithm
from ._server import AdaptiveLr, Beta1, Beta2, Tau, adaptive

__all__ = ["fedadam"]


def fedadam(
    server_lr: AdaptiveLr = 0.1, beta1: Beta1 = 0.9, beta2: Beta2 = 0.99, tau: Tau = 1e-3
) -> Algorithm:
    """FedAdam: FedAvg whose server steps like Adam. Reddi et al., ICLR 2021, Algorithm 2.

    v <- beta2 v + (1 - beta2) D^2; m, the step and the start as for all three (`_server.adaptive`). Parties weigh by their examples, as in
    the paper's experiments; its Algorithm 2 weighs them equally.
    """
    return adaptive(
        "fedadam", lambda v, d: beta2 * v + (1 - beta2) * d.square(), server_lr, beta1, tau, beta2
    )
