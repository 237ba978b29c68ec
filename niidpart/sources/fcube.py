"""FCUBE, the synthetic feature-skewed data set of NIID-Bench."""

from pathlib import Path
from typing import Annotated

import numpy as np

from ..arithmetic.rng import stream
from ..data import Data, from_arrays

__all__ = ["fcube"]


def fcube(
    root: str | Path | None = None, *, data_seed: Annotated[int, "Seed of the points."] = 0
) -> Data:
    """Points of the cube [-1, 1]^3, label 0 iff x1 > 0. Li et al., ICDE 2022, section IV-B and Figure 6.

    4,000 training points, 500 in each octant; 1,000 test points, uniform. Features float32 [N, 3]; groups are the octants 0..7.
    """
    octant = np.repeat(np.arange(8), 500)
    size = stream(data_seed, "fcube", "train").uniform(4000 * 3).reshape(4000, 3)
    x = np.where((octant[:, None] >> np.array([2, 1, 0])) & 1, -size, size).astype(np.float32)
    x_test = (2 * stream(data_seed, "fcube", "test").uniform(1000 * 3).reshape(1000, 3) - 1).astype(
        np.float32
    )
    return from_arrays(
        x,
        (x[:, 0] <= 0).astype(np.int64),
        x_test,
        (x_test[:, 0] <= 0).astype(np.int64),
        groups=octant,
    )
