"""Pools for train, val and test, and devices that draw from them: for FedCD's two strategies."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.deal import draw_subsets, split_by_class
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError
from ..registry import AtLeast

Pools = Mapping[str, list[Ints]]  # part -> the rows of each class
# Whether a device can draw so many examples from pools of so many of each class [K].
FitsPool = Callable[[int, Ints], bool]
NTrain = Annotated[
    int | None,
    "Training examples of a device; else 1/12 of the data set, or what the pools allow.",
    AtLeast(1),
]
NVal = Annotated[
    int | None,
    "Validation examples of a device; else a third of its training examples, or what the pools "
    "allow.",
    AtLeast(0),
]
NTest = Annotated[
    int | None,
    "Test examples of a device; else a tenth of its training examples, or what the pools allow.",
    AtLeast(0),
]
_INT32_ROWS = 1 << 31  # rows of smaller numbers fit
# By default train is 1/12 of the data set, val and test 1/3 and 1/10 of what train has.
DIVISORS = {"train": 12, "val": 3, "test": 10}


def draw_pools(labels: Ints, rng: Stream) -> Pools:
    """Return the examples of each class in three pools, 4 : 1 : 1 at random.

    As 40,000, 10,000 and 10,000 of CIFAR-10. UsageError for a class of fewer than 6.
    """
    sizes = np.bincount(labels)
    if sizes.min() < 6:
        raise UsageError(
            f"class {sizes.argmin()} has {sizes.min()} examples; at least 6 of each class are "
            "needed, 4 of them for train, 1 for val and 1 for test"
        )
    order = rng.child("pools").grouped_permutation(labels, len(sizes))
    pools: dict[str, list[Ints]] = {part: [] for part in DIVISORS}
    for rows in split_by_class(order, sizes):
        sixth = len(rows) // 6
        train, val, test = np.split(rows, [len(rows) - 2 * sixth, len(rows) - sixth])
        pools["train"].append(train)
        pools["val"].append(val)
        pools["test"].append(test)
    return pools


def count_classes_of(pools: Pools, part: str) -> Ints:
    """Return [K] how many examples of each class the pool of a part has."""
    return np.array([len(rows) for rows in pools[part]], np.int64)


def choose_sizes(
    asked: Mapping[str, int | None],
    n: int,
    pools: Pools,
    fits: FitsPool,
    kept: float = 1.0,
) -> dict[str, tuple[int, int]]:
    """Return for each part how many examples a device draws, and how many it could.

    As asked, else a twelfth of the data set for train (5,000 of 60,000), a third of that for val
    and a tenth for test, or what fits if that is less. UsageError, before anything is drawn, for
    more than the whole pool can serve.

    fits: holds for 1 example, and for fewer where it holds for more. kept: the least share of what
    a device draws that it keeps.
    """
    sizes: dict[str, tuple[int, int]] = {}
    for part, divisor in DIVISORS.items():
        of_class = count_classes_of(pools, part)
        n_pool = int(of_class.sum(dtype=np.int64))
        limit = _find_most(n, of_class, fits)
        size = asked[part]
        if size is None:
            whole = n if part == "train" else sizes["train"][0]
            size = min(max(1, whole // divisor), limit)
        else:
            most = _bound_draws(n_pool, kept)
            if size > most:
                raise UsageError(
                    f"n_{part} is {size}, and a device can draw at most {most} {part} examples; "
                    f"lower n_{part} to {limit}"
                )
        sizes[part] = (size, limit)
    return sizes


def _bound_draws(total: int, kept: float) -> int:
    """Return what a device could draw if all of a pool were to its liking.

    Where it drops examples: that, and room that chance does not fill.
    """
    return total if kept == 1 else int((2 * total + 1000) / kept)


def _find_most(n: int, of_class: Ints, fits: FitsPool) -> int:
    """Return the largest number of examples, up to n, that fits; by bisection."""
    low, high = 1, n
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle, of_class):
            low = middle
        else:
            high = middle - 1
    return low


def draw_rows(
    counts: Ints,
    part: str,
    limit: int,
    pools: Pools,
    rng: Stream,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return (party, row) pairs: for each device its examples, independently of the others.

    counts: [P, K] examples of each class for each device, without replacement at a device.
    limit: the size that would fit, for the error.
    """
    of_class = count_classes_of(pools, part)
    over = np.argwhere(counts > of_class)
    if len(over):
        p, k = over[0].tolist()
        raise UsageError(
            f"party {p} is to have {counts[p, k]} {part} examples of class {k}, and there are "
            f"{of_class[k]} to draw from; lower n_{part} to {limit}"
        )
    n_pairs = int(counts.sum(dtype=np.int64))
    # Narrow where it can be: fresh memory is a large part of what a pair costs.
    largest = max(int(pool.max(initial=0)) for pool in pools[part])
    kind = np.int32 if largest < _INT32_ROWS else np.int64
    parties, rows = np.empty(n_pairs, kind), np.empty(n_pairs, kind)
    start = 0
    for sizes, pool in zip(counts.T, pools[part], strict=True):
        party, item = draw_subsets(rng, sizes, len(pool))
        some = slice(start, start + len(party))
        parties[some] = party
        # "raise", which checks what is known to fit, would take a copy
        np.take(pool.astype(kind), item, out=rows[some], mode="clip")
        start += len(party)
    return parties, rows
