"""Processes under torchrun that share the jobs of each round."""

from .agree import agree, refuse_processes
from .group import ALONE, Elsewhere, Lost, Ranks, Terminated
from .join import current, joined

__all__ = [
    "ALONE",
    "Elsewhere",
    "Lost",
    "Ranks",
    "Terminated",
    "agree",
    "current",
    "joined",
    "refuse_processes",
]
