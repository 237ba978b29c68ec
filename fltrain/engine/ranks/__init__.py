"""Processes under torchrun that share the jobs of each round."""

from .agreement import require_agreement
from .group import ALONE, FaultElsewhere, RankLost, Ranks, Terminated
from .join import current_ranks, join_ranks

__all__ = [
    "ALONE",
    "FaultElsewhere",
    "RankLost",
    "Ranks",
    "Terminated",
    "current_ranks",
    "join_ranks",
    "require_agreement",
]
