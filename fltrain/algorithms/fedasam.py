"""FedSAM whose way uphill is measured by the size of each weight.

State: that of `fedavg.py`.
"""

from dataclasses import replace
from typing import Annotated

from ..directions.ascent import Ascent, AscentDirection
from ..interface import Algorithm, AtLeast, Local
from ._weights import PLANS, Weights
from .fedavg import ServerLr, fedavg
from .fedsam import Rho

__all__ = ["fedasam"]

FAMILY = "flatness"


def fedasam(
    rho: Rho = 0.5,
    eta: Annotated[
        float, "Added to the size of each weight, so that small ones are moved too.", AtLeast(0)
    ] = 0.01,
    weights: Weights = "examples",
    server_lr: ServerLr = 1.0,
) -> Algorithm:
    """FedASAM. Caldarola, Caputo, Ciccone, ECCV 2022: FedSAM by adaptive SAM; the gradient is taken
    at y + rho T^2 g / ||T g||, with T = abs(y) + eta for each weight and 1 for each bias.

    Weights are, as in the authors' code, the parameters with "weight" in their name, those of
    normalisation layers too. The rest is as in FedSAM. rho and eta are the defaults of that code,
    as in Kwon et al., ICML 2021, whose ASAM it is; the paper tunes both. rho 0 is FedAvg bit for
    bit.

    Examples
    --------
    >>> fedasam(rho=0.7, eta=0.2).hyper
    {'server_lr': 1.0, 'rho': 0.7, 'eta': 0.2}
    """
    plain = replace(fedavg(server_lr), name="fedasam", plan=PLANS[weights])
    if rho == 0:
        return plain
    hyper = plain.hyper | {"rho": rho, "eta": eta}
    return replace(plain, hyper=hyper, direction=direction)


def ascent(local: Local) -> Ascent:
    """Return an ascent of length rho, where each weight is measured by its size."""
    sized = tuple(name for name in local.start if "weight" in name)
    return Ascent(rho=local.hyper["rho"], sized=sized, eta=local.hyper["eta"])


direction = AscentDirection(ascent)
