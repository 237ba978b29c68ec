"""Parties look for flat minima: each gradient is taken a little uphill.

State: that of `fedavg.py`.
"""

from dataclasses import replace
from typing import Annotated

from ..directions.ascent import Ascent, AscentDirection
from ..interface import Algorithm, AtLeast, Local
from ._weights import PLANS, Weights
from .fedavg import ServerLr, fedavg

__all__ = ["fedsam"]

FAMILY = "flatness"

Rho = Annotated[
    float,
    "How far uphill from the weights the gradient is taken; 0 is without.",
    AtLeast(0),
]


def fedsam(
    rho: Rho = 0.05,
    weights: Weights = "examples",
    server_lr: ServerLr = 1.0,
) -> Algorithm:
    """FedSAM. Qu et al., ICML 2022, and Caldarola, Caputo, Ciccone, ECCV 2022: FedAvg whose parties
    step along the gradient at y + rho g / ||g||, g the gradient of the same batch at y.

    Two gradients a step, so it takes twice as long as FedAvg. The length ||g|| is over all
    parameters; weight decay, momentum and clipping come after the ascent, at y itself. Statistics
    of batch norm move with the first gradient alone; in both codes they move with both.

    rho is 0.05 as in Foret et al., ICLR 2021, whose SAM it is; the papers tune it. 0 is FedAvg bit
    for bit. `weights`: Caldarola et al. weigh by examples, Qu et al. alike.

    Examples
    --------
    >>> fedsam(rho=0.1).hyper
    {'server_lr': 1.0, 'rho': 0.1}
    """
    plain = replace(fedavg(server_lr), name="fedsam", plan=PLANS[weights])
    if rho == 0:
        return plain
    return replace(plain, hyper=plain.hyper | {"rho": rho}, direction=direction)


def ascent(local: Local) -> Ascent:
    """Return an ascent of length rho."""
    return Ascent(rho=local.hyper["rho"])


direction = AscentDirection(ascent)
