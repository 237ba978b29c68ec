"""What training on all data in one place would reach."""

from dataclasses import replace

from ..interface import Algorithm
from .fedavg import fedavg
from .solo import traffic

__all__ = ["centralised"]


def centralised() -> Algorithm:
    """Centralised training for rounds x local epochs on the union of all parties, each example with its party's transforms.

    It is FedAvg with all parties pooled into one, momentum starting anew each round; no model is exchanged.
    """
    return replace(fedavg(), name="centralised", pooled=True, traffic=traffic)
