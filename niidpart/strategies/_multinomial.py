"""Examples dealt one by one by chance: for the strategies whose counts are multinomial."""

import numpy as np

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream

_STEPS = 2.0 * (1 << 39)  # of the largest proportion: smaller ones than half a step count as 0
_BLOCK = 1 << 18  # examples drawn at a time; no count depends on it


def draw_counts(rng: Stream, proportions: Floats, n: int) -> Ints:
    """Return [P] how many of n examples each party gets, each going to one by its proportions."""
    weights = np.rint(proportions / proportions.max() * _STEPS).astype(np.int64)
    limits = np.cumsum(weights, dtype=np.int64)
    total = int(limits[-1])
    counts = np.zeros(len(proportions), np.int64)
    for start in range(0, n, _BLOCK):
        drawn = rng.integers(total, min(_BLOCK, n - start))
        # in rising order the limits are looked for in what is drawn, not the other way about
        drawn.sort()
        below = np.searchsorted(drawn, limits, side="left")
        counts += np.diff(below, prepend=0)
    return counts
