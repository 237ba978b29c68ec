"""FedAvg with a pull back to where the round began."""

from dataclasses import replace
from typing import Annotated

from ..directions.affine import Affine, AffineDirection
from ..interface import Algorithm, AtLeast, Local
from ._weights import PLANS, Weights
from .fedavg import fedavg

__all__ = ["fedprox"]

FAMILY = "proximal"


def fedprox(
    mu: Annotated[
        float, "Weight of the pull back to the weights received; 0 is FedAvg.", AtLeast(0)
    ] = 0.01,
    weights: Weights = "examples",
) -> Algorithm:
    """FedProx. Li et al., MLSys 2020, Algorithm 2: adds (mu/2) ||y - w||^2 to every party's loss, w
    the weights received.

    Over trained parameters only. Its gradient mu (y - w) passes through momentum like the rest (Li
    et al., ICDE 2022, Algorithm 1). Every party does all its epochs: the original lets slow ones
    stop early, and trains without momentum. The mean is by examples, so that mu is all that differs
    from FedAvg; the text draws parties by their sizes and weighs those drawn alike (`weights` is
    "uniform", beside `--cohort weighted`).

    Examples
    --------
    >>> fedprox(mu=0.1).hyper
    {'mu': 0.1}
    """
    base = replace(fedavg(), name="fedprox", plan=PLANS[weights])
    if mu == 0:
        return base
    return replace(base, hyper={"mu": mu}, direction=direction)


def terms(local: Local) -> Affine:
    """Return mu (y - w)."""
    return Affine(pull=local.hyper["mu"])


direction = AffineDirection(terms)
