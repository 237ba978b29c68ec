"""What FedCD's two strategies share: pools of examples for train, val and test, and devices that draw from them."""

from collections.abc import Callable, Mapping
from typing import Annotated

import numpy as np

from ..arithmetic.deal import draw_subsets
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError

Pools = Mapping[str, list[Ints]]  # part -> the rows of each class
Fits = Callable[[int, Ints], bool]
NTrain = Annotated[
    int | None,
    "Training examples of a device, at least 1; else 1/12 of the data set, or what the pools allow.",
]
NVal = Annotated[
    int | None,
    "Validation examples of a device, 0 or more; else a third of its training examples, or what the pools allow.",
]
NTest = Annotated[
    int | None,
    "Test examples of a device, 0 or more; else a tenth of its training examples, or what the pools allow.",
]
SHARES = {"train": 12, "val": 3, "test": 10}  # of the data set, and of what train has


def pools(labels: Ints, rng: Stream) -> Pools:
    """The examples of each class in three, 4 : 1 : 1 at random, as 40,000, 10,000 and 10,000 of CIFAR-10. ValueError for a class of fewer than 6."""
    sizes = np.bincount(labels)
    if sizes.min() < 6:
        raise UsageError(
            f"class {sizes.argmin()} has {sizes.min()} examples; at least 6 of each class are needed, 4 of them for train, 1 for val and 1 for test"
        )
    rows = np.split(
        rng.child("pools").grouped_permutation(labels, len(sizes)), np.cumsum(sizes)[:-1]
    )
    sixths = [(len(r) - 2 * (len(r) // 6), len(r) - len(r) // 6) for r in rows]
    parts = [np.split(r, cuts) for r, cuts in zip(rows, sixths, strict=True)]
    return {part: [of_class[i] for of_class in parts] for i, part in enumerate(SHARES)}


def sizes_of(
    asked: Mapping[str, int | None], n: int, pool: Pools, fits: Fits, kept: float = 1.0
) -> dict[str, tuple[int, int]]:
    """For each part, how many examples a device draws, and how many it could.

    As asked, else a twelfth of the data set for train (5,000 of 60,000), a third of that for val and a tenth for test, or what fits if that
    is less. fits(examples, sizes of the pool's classes) holds for 1 example, and for fewer where it holds for more. kept: the least share of
    what a device draws that it keeps. ValueError, before anything is drawn, for more than the whole pool can serve.
    """
    sizes: dict[str, tuple[int, int]] = {}
    for part, share in SHARES.items():
        limit = _most(n, np.array([len(rows) for rows in pool[part]], np.int64), fits)
        given = asked[part]
        if given is None:
            given = min(max(1, (n if part == "train" else sizes["train"][0]) // share), limit)
        elif given < (part == "train"):
            raise UsageError(f"n_{part} is {given}; it must be {int(part == 'train')} or more")
        elif given > (most := _whole(pool[part], kept)):
            raise UsageError(
                f"n_{part} is {given}, and a device can draw at most {most} {part} examples; lower n_{part} to {limit}"
            )
        sizes[part] = (given, limit)
    return sizes


def _whole(rows: list[Ints], kept: float) -> int:
    """What a device could draw if all of the pool were to its liking; where it drops examples, that and room that chance does not fill."""
    total = sum(map(len, rows))
    return total if kept == 1 else int((2 * total + 1000) / kept)


def _most(n: int, of_class: Ints, fits: Fits) -> int:
    low, high = 1, n
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle, of_class) else (low, middle - 1)
    return low


def draw(counts: Ints, part: str, limit: int, pool: Pools, rng: Stream) -> tuple[Ints, Ints]:
    """(party, row) pairs: counts [P, K] examples of each class for each device, without replacement at a device, independently of the others."""
    of_class = np.array([len(rows) for rows in pool[part]], np.int64)
    over = np.argwhere(counts > of_class)
    if len(over):
        p, k = over[0].tolist()
        raise UsageError(
            f"party {p} is to have {counts[p, k]} {part} examples of class {k}, and there are {of_class[k]} to draw from; lower n_{part} to {limit}"
        )
    found = [
        (draw_subsets(rng, column, len(rows)), rows)
        for column, rows in zip(counts.T, pool[part], strict=True)
    ]
    return np.concatenate([party for (party, _), _ in found]), np.concatenate(
        [rows[item] for (_, item), rows in found]
    )
