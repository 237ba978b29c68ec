"""Who trains in a round."""

import math

import torch
from torch import Tensor

from ..draws import key, order


def cohort_size(n_parties: int, fraction: float) -> int:
    """Return max(1, floor(P * fraction))."""
    # 100 x 0.29 is 28.999999999999996 in floats
    return max(1, math.floor(n_parties * fraction + 1e-9))


def sample(n_parties: int, fraction: float, seed: int, round: int) -> Tensor:
    """Return the parties of a round, [S] int64 ascending.

    Uniform without replacement, and the same for every algorithm of that seed.
    """
    size = cohort_size(n_parties, fraction)
    if size == n_parties:
        return torch.arange(n_parties)
    shuffled = order(key(seed, "cohort", round), 0, n_parties, torch.device("cpu"))
    return shuffled[:size].sort().values
