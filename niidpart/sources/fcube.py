"""FCUBE, the synthetic feature-skewed data set of NIID-Bench."""

from pathlib import Path
from typing import Annotated

import numpy as np

from ..arithmetic.rng import Ints, stream
from ..data import Array, Data, DataSource, from_arrays

_PER_OCTANT = 500
_N_TEST = 1000


def fcube(
    root: str | Path | None = None, *, data_seed: Annotated[int, "Seed of the points."] = 0
) -> Data:
    """Points of the cube [-1, 1]^3, label 0 iff x1 > 0. Li et al., ICDE 2022, IV-B, Figure 6.

    4,000 training points, 500 in each octant; 1,000 test points, uniform. Features float32
    [N, 3]; groups are the octants 0..7.

    Parameters
    ----------
    root : None
        Nothing is read from the disk.
    data_seed : int
        Seed of the points.
    """
    octant = np.repeat(np.arange(8), _PER_OCTANT)
    train, test = stream(data_seed, "fcube", "train"), stream(data_seed, "fcube", "test")
    size = train.uniform(len(octant) * 3).reshape(-1, 3)
    # The bits of the octant's number, highest first, say which coordinates are negative.
    is_negative = (octant[:, None] >> np.array([2, 1, 0])) & 1
    x = np.where(is_negative, -size, size).astype(np.float32)
    uniform = test.uniform(_N_TEST * 3).reshape(-1, 3)
    x_test = (2 * uniform - 1).astype(np.float32)
    return from_arrays(x, _label(x), x_test, _label(x_test), groups=octant)


def _label(x: Array) -> Ints:
    return (x[:, 0] <= 0).astype(np.int64)


ENTRY = DataSource(load=fcube, is_here=True, paper="li2022silos")
