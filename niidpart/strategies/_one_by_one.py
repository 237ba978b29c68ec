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

_REDRAWS = 10**6  # of one example's class, after which none is left that the party could draw


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
    n_parties, n_classes = mixtures.shape
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
        for _ in range(_REDRAWS):
            place = bisect_left(ends[party], draws.uniform())
            label = place if place < n_classes else 0  # as argmax has it where nothing is true
            if left[label] > 0:
                break
            if refills:
                left[label] = int(class_sizes[label])
        else:
            raise UsageError(
                f"after {done} of {n} examples the classes of party {party} are used up, and the "
                "published code would draw for ever; take a larger beta, or the strategy party-dir"
            )
        left[label] -= 1
        dealt[done] = party, label, left[label]
        done += 1
    return dealt[:, 0], dealt[:, 1], dealt[:, 2]


def pick_rows(class_rows: list[Ints], labels: Ints, places: Ints) -> Ints:
    """Return the rows at those places of their classes."""
    starts = np.cumsum([0, *map(len, class_rows[:-1])], dtype=np.int64)
    return np.concatenate(class_rows)[starts[labels] + places]
