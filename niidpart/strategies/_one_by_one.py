"""Examples dealt one by one: a party by lot, and a class by the party's own proportions.

As the code of FedDyn (Acar et al., ICLR 2021) does it, and those who took it over.
"""

from bisect import bisect_left

import numpy as np

from ..arithmetic import exact
from ..arithmetic.exact import Floats
from ..arithmetic.numpy_draws.legacy import LegacyDraws
from ..arithmetic.rng import Ints
from ..errors import UsageError

_LEAST_CHANCE = 1e-6  # of a class that is left; below, the published code draws for minutes


def draw_mixtures(draws: LegacyDraws, beta: float, n_parties: int, n_classes: int) -> Floats:
    """Return [P, K] a party's proportions, as `dirichlet([beta] * K, size=P)` draws them."""
    return np.array([draws.dirichlet(beta, n_classes) for _ in range(n_parties)])


def draw_lognormal_sizes(draws: LegacyDraws, n: int, n_parties: int, sigma: float) -> Ints:
    """Return [P] sizes with the mean n / P and that sigma, which sum to n."""
    mean = exact.log(np.array([float(n // n_parties)]))[0]
    relative = draws.lognormals(float(mean), sigma, n_parties)
    sizes = (relative / exact.add_in_order(relative) * n).astype(np.int64)
    return give_rest_to_first(sizes, n)


def give_rest_to_first(sizes: Ints, n: int) -> Ints:
    """Return the sizes, where the first party has what is missing to n."""
    first = np.zeros_like(sizes)
    first[0] = n - sizes.sum(dtype=np.int64)
    return sizes + first


def deal_one_by_one(
    draws: LegacyDraws,
    sizes: Ints,
    mixtures: Floats,
    class_sizes: Ints,
    *,
    refills: bool,
) -> tuple[Ints, Ints, Ints]:
    """Return (party, class, place) of each example dealt; places are 0..size of the class - 1.

    A class is used from its end. mixtures: [P, K]. refills: a class that is used up begins anew,
    so that some examples are dealt twice. UsageError where a party's classes are all used up.
    """
    n_parties = len(mixtures)
    ends = exact.accumulate(mixtures).tolist()
    left, missing = class_sizes.tolist(), sizes.tolist()
    n = int(sizes.sum(dtype=np.int64))
    dealt = np.empty((n, 3), np.int64)
    done = 0
    while done < n:
        party = draws.below(n_parties)
        if missing[party] <= 0:
            continue
        missing[party] -= 1
        label = _draw_class(draws, ends[party])
        while left[label] <= 0:
            if refills:
                left[label] = int(class_sizes[label])
            else:
                _require_chance(mixtures[party], left, party, n - done)
            label = _draw_class(draws, ends[party])
        left[label] -= 1
        dealt[done] = party, label, left[label]
        done += 1
    return dealt[:, 0], dealt[:, 1], dealt[:, 2]


def _draw_class(draws: LegacyDraws, ends: list[float]) -> int:
    """Return the first class whose end is not below a uniform draw; class 0 where there is none."""
    place = bisect_left(ends, draws.uniform())
    return place if place < len(ends) else 0


def _require_chance(mixture: Floats, left: list[int], party: int, n_left: int) -> None:
    """Raise UsageError where a party can draw hardly anything that is left."""
    chance = 0.0
    for share, n_rows in zip(mixture.tolist(), left, strict=True):
        chance += share if n_rows > 0 else 0.0
    if chance < _LEAST_CHANCE:
        raise UsageError(
            f"with {n_left} examples left the classes of party {party} are used up, and the "
            "published code would draw for ever; take a larger beta, or the strategy party-dir"
        )


def pick_rows(class_rows: list[Ints], labels: Ints, places: Ints) -> Ints:
    """Return the rows at those places of their classes."""
    starts = np.cumsum([0, *map(len, class_rows[:-1])], dtype=np.int64)
    by_class: Ints = np.concatenate(class_rows)
    picked: Ints = by_class[starts[labels] + places]
    return picked
