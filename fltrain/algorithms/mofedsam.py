"""FedSAM whose parties follow the direction of the last round besides.

State: that of `_sent_momentum.py`.
"""

from dataclasses import replace

from ..directions.affine import AffineDirection
from ..directions.ascent import AscentDirection
from ..interface import Algorithm
from ._sent_momentum import Alpha, send_momentum, terms
from ._weights import Weights
from .fedavg import ServerLr, fedavg
from .fedsam import Rho, ascent, fedsam

__all__ = ["mofedsam"]

FAMILY = "flatness"


def mofedsam(
    rho: Rho = 0.05,
    alpha: Alpha = 0.1,
    weights: Weights = "examples",
    server_lr: ServerLr = 1.0,
) -> Algorithm:
    """MoFedSAM. Qu et al., ICML 2022: FedCM's step, with FedSAM's gradient in place of the party's
    own: alpha grad f(y + rho g / ||g||) + (1 - alpha) Delta.

    alpha is the paper's beta; Delta is FedCM's, with all that is said there of momentum and of
    parties of unequal sizes. rho 0 is FedCM bit for bit, alpha 1 FedSAM. Defaults are FedCM's and
    FedSAM's.

    Examples
    --------
    >>> mofedsam(rho=0.1).hyper
    {'server_lr': 1.0, 'alpha': 0.1, 'rho': 0.1}
    """
    if alpha == 1:
        return replace(fedsam(rho, weights, server_lr), name="mofedsam")
    base = replace(fedavg(server_lr), name="mofedsam")
    plain = replace(send_momentum(base, weights), hyper=base.hyper | {"alpha": alpha})
    if rho == 0:
        return replace(plain, direction=without_ascent)
    return replace(plain, hyper=plain.hyper | {"rho": rho}, direction=direction)


direction = AscentDirection(ascent, terms)
without_ascent = AffineDirection(terms)
