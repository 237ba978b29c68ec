"""Clusters of rows of numbers, by k-means in integers: the same ones on every machine.

Numbers become integers of 16 bits. Products and sums of these are whole and below 2^53, so that
float64 holds each of them exactly, and a product of matrices is the same in whatever order a
library adds. So this is as fast as any k-means, and promises its bits all the same.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError

ReadRows = Callable[[Ints | slice], NDArray[Any]]

_STEPS = 32767.0  # of the numbers to either side of their middle
_SAMPLE = 1 << 14  # rows that centres are fitted to
_ROUNDS = 25  # of Lloyd's at most; part of the definition
_MOST_NUMBERS = 1 << 20  # of a row: their squares sum below 2^53
_BLOCK = 1 << 22  # numbers read at a time; no cluster depends on it


def cluster_rows(read: ReadRows, n: int, n_clusters: int, rng: Stream) -> NDArray[np.uint16]:
    """Return [n] the cluster of each row: k-means of a sample, then the nearest centre for all."""
    width = np.asarray(read(slice(0, 1))).reshape(1, -1).shape[1]
    if width > _MOST_NUMBERS:
        raise UsageError(
            f"a row has {width} numbers; clusters are found for {_MOST_NUMBERS} at most"
        )
    scale = _find_scale(read, n, width)
    sample = np.sort(rng.child("sample").permutation(n)[:_SAMPLE])
    points = _to_whole(read(sample), scale)
    centres = _fit_centres(points, n_clusters, rng)
    nearest = np.empty(n, np.uint16)
    for some in _list_blocks(n, width):
        nearest[some] = _find_nearest(_to_whole(read(some), scale), centres)
    return nearest


def _list_blocks(n: int, width: int) -> Iterator[slice]:
    step = max(1, _BLOCK // width)
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def _find_scale(read: ReadRows, n: int, width: int) -> tuple[float, float]:
    """Return (middle, half) of the range of all numbers; UsageError where one is not finite."""
    lows, highs = [], []
    for some in _list_blocks(n, width):
        x = np.asarray(read(some))
        if not np.isfinite(x).all():
            raise UsageError(
                "the numbers to find clusters of hold NaN or infinity; leave those rows out or "
                "fill them"
            )
        lows.append(float(x.min()))
        highs.append(float(x.max()))
    low, high = min(lows), max(highs)
    return low / 2 + high / 2, high / 2 - low / 2


def _to_whole(x: NDArray[Any], scale: tuple[float, float]) -> Floats:
    """Return [n, D] float64 that hold integers from -32767 to 32767."""
    middle, half = scale
    flat = np.asarray(x).reshape(len(x), -1).astype(np.float64)
    if not half > 0:
        return np.zeros_like(flat)
    return np.rint((flat - middle) / half * _STEPS)


def _square(whole: Floats) -> Ints:
    """Return [n] the squared length of each row."""
    numbers = whole.astype(np.int64)
    squares: Ints = (numbers * numbers).sum(axis=1, dtype=np.int64)
    return squares


def _fit_centres(points: Floats, n_clusters: int, rng: Stream) -> Floats:
    """Return [C, D] centres of points [n, D]: k-means++, then Lloyd's rounds."""
    centres = _choose_seeds(points, n_clusters, rng.child("seeds"))
    nearest = _find_nearest(points, centres)
    for _ in range(_ROUNDS):
        centres = _move_centres(points, nearest, centres)
        moved = _find_nearest(points, centres)
        if np.array_equal(moved, nearest):
            break
        nearest = moved
    return centres


def _choose_seeds(points: Floats, n_clusters: int, rng: Stream) -> Floats:
    """Return [C, D] points, each drawn by its squared distance to those before it."""
    lengths = _square(points)
    chosen = rng.integers(len(points), 1)
    distance = np.full(len(points), np.iinfo(np.int64).max)
    for _ in range(n_clusters - 1):
        last = points[chosen[-1]]
        products = (points @ last).astype(np.int64)
        to_last = lengths + lengths[chosen[-1]] - 2 * products
        distance = np.minimum(distance, to_last)
        limits = np.cumsum(_coarsen(distance), dtype=np.int64)
        if not limits[-1]:
            raise UsageError(
                f"there are only {len(np.unique(points[chosen], axis=0))} different rows among "
                f"{len(points)}, and {n_clusters} clusters were asked for; ask for fewer"
            )
        drawn = rng.integers(int(limits[-1]), 1)
        chosen = np.append(chosen, np.searchsorted(limits, drawn, side="right"))
    return points[chosen]


def _coarsen(distance: Ints) -> Ints:
    """Return distances divided by a power of two so that their sum stays below 2^62."""
    bits = int(distance.max()).bit_length() + len(distance).bit_length()
    shift = max(0, bits - 62)
    return distance >> shift


def _move_centres(points: Floats, nearest: Ints, centres: Floats) -> Floats:
    """Return the means of the points of each centre, rounded; one without points stays."""
    n_clusters = len(centres)
    sizes = np.bincount(nearest, minlength=n_clusters)
    belongs = np.zeros((n_clusters, len(points)))
    belongs[nearest, np.arange(len(points))] = 1.0
    sums = (belongs @ points).astype(np.int64)
    held = np.maximum(sizes, 1)[:, None]
    means = np.floor_divide(2 * sums + held, 2 * held)
    return np.where(sizes[:, None] > 0, means.astype(np.float64), centres)


def _find_nearest(points: Floats, centres: Floats) -> Ints:
    """Return [n] the nearest centre of each point, the first of equally near ones."""
    products = points @ centres.T
    lengths = _square(centres).astype(np.float64)
    nearest: Ints = np.argmin(lengths - 2 * products, axis=1)
    return nearest
