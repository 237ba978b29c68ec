"""PFLlib's partitions: each party's rows in the order in which they are dealt."""

import math

import numpy as np

from ..arithmetic.exact import Floats
from ..arithmetic.numpy_draws.legacy import LegacyDraws
from ..arithmetic.rng import Ints
from ..errors import UsageError
from . import Arrays
from ._held_classes import require_class_count
from ._replays import (
    PartyRows,
    cut_counts,
    limit_tries,
    list_rows,
    normalise,
    refuse_endless,
    store_tries,
)

_BATCH = 40  # examples that a party needs so that its test part, a quarter, is a batch of ten
_LEAST_OF_HOLDERS = 10


def cut_by_class(
    draws: LegacyDraws, labels: Ints, n_parties: int, beta: float
) -> tuple[PartyRows, Arrays]:
    """Return the split `dir`: NIID-Bench's cut with its balance step, with a minimum of its own."""
    n = len(labels)
    least = int(min(_BATCH, n / n_parties / 2))
    is_holder = np.ones((n_parties, int(labels.max()) + 1), bool)
    return _cut_until(draws, labels, is_holder, beta, least, "dir-balanced")


def cut_among_holders(
    draws: LegacyDraws, labels: Ints, n_parties: int, beta: float, k: int
) -> tuple[PartyRows, Arrays]:
    """Return the split `exdir`: k classes a party, each cut among its holders."""
    is_holder = _draw_holders(draws, n_parties, int(labels.max()) + 1, k)
    parties, stored = _cut_until(
        draws, labels, is_holder, beta, _LEAST_OF_HOLDERS, "extended-dir", gives_rest=True
    )
    for party, rows in enumerate(parties):
        order = np.array(rows)
        draws.shuffle(order)
        parties[party] = order.tolist()
    return parties, stored


def deal_in_turn(
    draws: LegacyDraws, labels: Ints, n_parties: int, k: int, balance: bool
) -> PartyRows:
    """Return the split `pat`: class by class, to the first parties that lack classes."""
    class_rows = [rows.tolist() for rows in list_rows(labels)]
    n_classes = len(class_rows)
    require_class_count(k, n_classes)
    least = int(min(_BATCH, len(labels) / n_parties / 2)) / n_classes
    n_holders = math.ceil(n_parties / n_classes * k)
    lacking = [k] * n_parties
    parties: PartyRows = [[] for _ in range(n_parties)]
    for label, rows in enumerate(class_rows):
        holders = [party for party in range(n_parties) if lacking[party]][:n_holders]
        if not holders:
            break
        sizes = _draw_sizes(draws, label, len(rows), len(holders), least, balance)
        start = 0
        for party, size in zip(holders, sizes, strict=True):
            parties[party] += rows[start : start + size]
            start += size
            lacking[party] -= 1
    idle = [party for party in range(n_parties) if not parties[party]]
    if idle:
        raise UsageError(f"party {idle[0]} gets no example, and there the published code stops")
    return parties


def _draw_sizes(
    draws: LegacyDraws, label: int, n: int, n_holders: int, least: float, balance: bool
) -> list[int]:
    """Return how many of a class's n rows each holder gets; the last one takes the rest."""
    fair = n / n_holders
    sizes = [int(fair)] * (n_holders - 1)
    if not balance:
        low, high = int(max(fair / 10, least)), int(fair)
        if low >= high and n_holders > 1:
            raise UsageError(
                f"class {label} has {n} examples for {n_holders} parties, and with so few the "
                "published code stops; use fewer parties, or --even"
            )
        sizes = [low + draws.below(high - low) for _ in sizes]
    return [*sizes, n - sum(sizes)]


def _draw_holders(draws: LegacyDraws, n_parties: int, n_classes: int, k: int) -> np.ndarray:
    """Return [P, K] whether a party holds a class, drawn again until each class has enough."""
    require_class_count(k, n_classes)
    least = max(k * n_parties // n_classes // 2, 1)
    n_tries = limit_tries(n_parties * n_classes)
    for _ in range(n_tries):
        is_holder = np.zeros((n_parties, n_classes), bool)
        for party in range(n_parties):
            is_holder[party, draws.choose(n_classes, k)] = True
        if np.count_nonzero(is_holder, axis=0).min() >= least:
            return is_holder
    asked = f"each of {n_classes} classes {least} of {n_parties} parties"
    raise refuse_endless(n_tries, f"{k} classes a party", asked, "extended-dir")


def _cut_until(
    draws: LegacyDraws,
    labels: Ints,
    is_holder: np.ndarray,
    beta: float,
    least: int,
    alternative: str,
    *,
    gives_rest: bool = False,
) -> tuple[PartyRows, Arrays]:
    """Return classes cut among holders with room, drawn again until each party has `least`.

    gives_rest: where a class has no holder with room, the last holder gets it, else the last party.
    """
    n, n_parties = len(labels), len(is_holder)
    class_rows = list_rows(labels)
    n_tries = limit_tries(n)
    for tries in range(1, n_tries + 1):
        parties: PartyRows = [[] for _ in range(n_parties)]
        sizes = np.zeros(n_parties, np.int64)
        for rows, holds in zip(class_rows, is_holder.T, strict=True):
            order = rows.copy()
            draws.shuffle(order)
            gets_some = holds & (sizes < n / n_parties)
            proportions = normalise(draws.dirichlet(beta, n_parties) * gets_some)
            counts = cut_counts(proportions, len(order))
            if gives_rest:
                counts = _give_rest(counts, proportions, holds)
            _hand_out(parties, order.tolist(), counts)
            sizes += counts
        if sizes.min() >= least:
            return parties, store_tries(tries)
    asked = f"each of {n_parties} parties {least} of {n} examples"
    raise refuse_endless(n_tries, f"beta {beta}", asked, alternative)


def _give_rest(counts: Ints, proportions: Floats, holds: np.ndarray) -> Ints:
    """Return the counts, where what went beyond the last holder by rounding is its own."""
    last = int(np.flatnonzero(holds)[-1])
    beyond = counts[last + 1 :].sum(dtype=np.int64)
    kept = counts.copy()
    kept[last + 1 :] = 0
    kept[last] += beyond
    return kept


def _hand_out(parties: PartyRows, order: list[int], counts: Ints) -> None:
    """Append to each party's rows as many of the order as its count says."""
    start = 0
    for party in np.flatnonzero(counts).tolist():
        stop = start + int(counts[party])
        parties[party] += order[start:stop]
        start = stop
