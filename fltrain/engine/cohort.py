"""Who trains in a round."""

import math

import torch
from torch import Tensor

from ..draws import key, order


def sample(n_parties: int, fraction: float, seed: int, round: int) -> Tensor:
    """[S] int64 ascending: max(1, floor(P * fraction)) parties, uniform without replacement, the same for every algorithm of that seed."""
    size = max(
        1, math.floor(n_parties * fraction + 1e-9)
    )  # 100 x 0.29 is 28.999999999999996 in floats
    if size == n_parties:
        return torch.arange(n_parties)
    return order(key(seed, "cohort", round), 0, n_parties, torch.device("cpu"))[:size].sort().values
