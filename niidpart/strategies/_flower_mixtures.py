"""flwr-datasets' DirichletPartitioner and InnerDirichletPartitioner."""

from bisect import bisect_right

import numpy as np

from ..arithmetic import exact
from ..arithmetic.exact import Floats
from ..arithmetic.numpy_draws.modern import ModernDraws
from ..arithmetic.rng import Ints
from ..errors import UsageError
from . import Owners
from ._replays import cut_counts, list_rows, normalise, store_tries

_TRIES = 11


def deal_by_class(
    draws: ModernDraws,
    labels: Ints,
    n_parties: int,
    beta: float,
    redraw_below: int,
    is_balanced: bool,
) -> Owners:
    """Return the split of DirichletPartitioner: each class cut in its order.

    is_balanced: whoever has more than a fair share gets nothing of the next class.
    """
    n = len(labels)
    class_rows = list_rows(labels)
    for tries in range(1, _TRIES + 1):
        owner = np.empty(n, np.int64)
        sizes = np.zeros(n_parties, np.int64)
        for rows in class_rows:
            proportions = draws.dirichlet(beta, n_parties)
            if is_balanced:
                proportions = normalise(np.where(sizes > n / n_parties, 0.0, proportions))
            counts = cut_counts(proportions, len(rows))
            owner[rows] = np.repeat(np.arange(n_parties), counts)
            sizes += counts
        if sizes.min() >= redraw_below:
            return Owners(owner, store_tries(tries))
    raise UsageError(
        f"in {_TRIES} tries no draw of beta {beta} gave each of {n_parties} parties {redraw_below} "
        f"of {n} examples, and there the published code stops; lower redraw_below, or take the "
        "strategy dir, which draws once"
    )


def deal_by_party(draws: ModernDraws, labels: Ints, n_parties: int, beta: float) -> Owners:
    """Return the split of InnerDirichletPartitioner with n // P examples for each party.

    One by one: a party that is not full by lot, then a class by its proportions. A class that is
    used up is taken out of all parties' proportions.
    """
    class_rows = [rows.tolist() for rows in list_rows(labels)]
    n_classes, n = len(class_rows), len(labels)
    mixtures = np.array([draws.dirichlet(beta, n_classes) for _ in range(n_parties)])
    ends = _find_ends(mixtures)
    missing = [n // n_parties] * n_parties
    n_left = n // n_parties * n_parties
    open_parties = list(range(n_parties))
    owner = np.full(n, -1, np.int64)
    while n_left:
        party = open_parties[draws.below(len(open_parties))]
        if not missing[party]:
            open_parties.remove(party)
            continue
        label = bisect_right(_require_ends(ends[party], party, n_left), draws.uniform())
        while not class_rows[label]:
            mixtures[:, label] = 0.0
            mixtures = np.array([normalise(mixture) for mixture in mixtures])
            ends = _find_ends(mixtures)
            label = bisect_right(_require_ends(ends[party], party, n_left), draws.uniform())
        owner[class_rows[label].pop()] = party
        missing[party] -= 1
        n_left -= 1
    return Owners(owner, {})


def _find_ends(mixtures: Floats) -> list[list[float]]:
    """Return for each party the cumulative proportions, the last one 1."""
    ends = exact.accumulate(mixtures)
    with np.errstate(invalid="ignore"):
        lists: list[list[float]] = (ends / ends[:, -1:]).tolist()
    return lists


def _require_ends(ends: list[float], party: int, n_left: int) -> list[float]:
    """Return the ends; UsageError where nothing is left of what a party's mixture has."""
    if ends[-1] != 1.0:
        raise UsageError(
            f"with {n_left} examples left all classes of party {party} are used up, and there the "
            "published code stops; take a larger beta, or the strategy party-dir"
        )
    return ends
