"""Each step goes along the party's gradient and the direction of the last round.

State: that of `_sent_momentum.py`.
"""

from dataclasses import replace

from ..directions.affine import AffineDirection
from ..interface import Algorithm
from ._sent_momentum import Alpha, send_momentum, terms
from ._weights import PLANS, Weights
from .fedavg import ServerLr, fedavg

__all__ = ["fedcm"]

FAMILY = "direction"


def fedcm(
    alpha: Alpha = 0.1,
    weights: Weights = "examples",
    server_lr: ServerLr = 1.0,
) -> Algorithm:
    """FedCM. Xu, Wang, Wang, Yao 2021: each step of a party goes along alpha g + (1 - alpha) Delta,
    Delta the direction that the cohort of the last round took.

    Delta = (w - sum_i p_i y_i) / sum_i p_i lr a_i, 0 in the first round, and w steps towards the
    mean as FedAvg does. a_i is the number of steps tau_i: with parties of one size that is the
    printed 1 / (lr K n) sum_i (w - y_i) of n parties, and with unequal ones, which the text has
    not, the mean number of steps stands for K. The text has no momentum. With it the weights move
    by a_i >= tau_i gradients (`effective_steps`), and a Delta divided by tau_i would grow from
    round to round.

    alpha is 0.1 as in the authors' experiments; 1 is FedAvg bit for bit, and sends no direction.
    `weights`: the text weighs parties alike, and has parties of one size; by examples a comparison
    with FedAvg is one of the direction alone. Weight decay is added to the whole, and not
    multiplied by alpha, as in FL-Simulator. Only parameters have a direction.

    Examples
    --------
    >>> fedcm(alpha=0.05).hyper
    {'server_lr': 1.0, 'alpha': 0.05}
    """
    base = replace(fedavg(server_lr), name="fedcm")
    if alpha == 1:
        return replace(base, plan=PLANS[weights])
    return replace(
        send_momentum(base, weights),
        hyper=base.hyper | {"alpha": alpha},
        direction=direction,
    )


direction = AffineDirection(terms)
