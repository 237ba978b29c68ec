"""Features that are read for the rows that are asked for; those of several parts become one."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints

Array = NDArray[Any]  # of any type and shape
Features = Callable[[Ints | slice], Array]


def resolve_rows(rows: Ints | slice, n: int) -> Ints:
    """Return [m] int64 rows in 0..n-1, of an array of them or of a slice; IndexError outside."""
    if isinstance(rows, slice):
        return np.arange(*rows.indices(n), dtype=np.int64)
    numbers = np.asarray(rows, np.int64)
    if not len(numbers):
        return numbers
    low, high = numbers.min(), numbers.max()
    if low < 0 or high >= n:
        raise IndexError(f"rows {low}..{high} were asked for; there are 0..{n - 1}")
    return numbers


def chain_features(*parts: tuple[Features, int]) -> Features:
    """Return the features of several parts, one after the other.

    parts: (features, number of rows) of each.
    """
    bounds = np.cumsum([0, *(n for _, n in parts)], dtype=np.int64)
    total = int(bounds[-1])

    def read_features(rows: Ints | slice) -> Array:
        numbers = resolve_rows(rows, total)
        out: Array | None = None
        for i, (features, _) in enumerate(parts):
            low, high = bounds[i], bounds[i + 1]
            here = (numbers >= low) & (numbers < high)
            # No rows at all: the first part still says the shape and the type of an example.
            if not here.any() and (len(numbers) or out is not None):
                continue
            x = features(numbers[here] - low)
            if out is None:
                out = np.empty((len(numbers), *x.shape[1:]), x.dtype)
            out[here] = x
        if out is None:
            raise IndexError(f"there are no rows in 0..{total - 1}")
        return out

    return read_features
