"""fluke's distributions: each party's places in the pools of training and test examples.

A pool is an array of labels. All pools are dealt by one rule, one after another; parties may hold
a place twice where the published code gives it twice.
"""

from collections.abc import Sequence

import numpy as np

from ..arithmetic.deal import split_by_class
from ..arithmetic.numpy_draws.legacy import LegacyDraws
from ..arithmetic.rng import Ints
from ..errors import UsageError
from ._held_classes import require_class_count
from ._replays import sort_by_class

LabelPools = Sequence[Ints]
Dealt = list[list[Ints]]  # [pool][party] places


def deal_evenly(draws: LegacyDraws, pools: LabelPools, n_parties: int) -> Dealt:
    """Return the split `iid`: equal runs of an order; of the rest one each to the first parties."""
    dealt = []
    for labels in pools:
        n = len(labels)
        _require_examples(n, n_parties)
        order = draws.permutation(n)
        size = n // n_parties
        parties = np.split(order[: size * n_parties], n_parties)
        for party, place in enumerate(order[size * n_parties :]):
            parties[party] = np.append(parties[party], place)
        dealt.append(parties)
    return dealt


def deal_by_power(
    draws: LegacyDraws, pools: LabelPools, n_parties: int, exponent: float, min_each: int
) -> Dealt:
    """Return the split `qnt`: each place to a party drawn by a power law, min_each to all."""
    if not min_each:
        raise UsageError("min_each is 0; the published code gives each party at least 1 example")
    dealt = []
    for labels in pools:
        n = len(labels)
        _require_examples(n, n_parties * min_each)
        drawn = draws.powers(exponent, n - n_parties * min_each) * n_parties
        owner = np.concatenate([drawn.astype(np.int64), np.repeat(np.arange(n_parties), min_each)])
        draws.shuffle(owner)
        dealt.append(_list_held(owner, n_parties))
    return dealt


def deal_classes(draws: LegacyDraws, pools: LabelPools, n_parties: int, k: int) -> Dealt:
    """Return the split `lbl_qnt`: k classes a party, each example to one of the class's holders."""
    classes = set(np.unique(pools[0]).tolist())
    require_class_count(k, len(classes))
    if k * n_parties < len(classes):
        least = -(-len(classes) // k)
        raise UsageError(
            f"{n_parties} parties with {k} of {len(classes)} classes each leave classes out, and "
            f"there the published code stops; use at least {least} parties"
        )
    chosen = _choose_classes(draws, classes, n_parties, k)
    dealt = []
    for labels in pools:
        owner = np.zeros(len(labels), np.int64)
        for label in classes:
            holders = np.flatnonzero([label in held for held in chosen])
            places = np.flatnonzero(labels == label)
            owner[places] = holders[draws.below_each(len(holders), len(places))]
        dealt.append(_list_held(owner, n_parties))
    return dealt


def _choose_classes(
    draws: LegacyDraws, classes: set[int], n_parties: int, k: int
) -> list[list[int]]:
    """Return k classes of each party; one that nobody drew takes another's place by lot.

    In the order in which python has what is left of a set.
    """
    chosen = [draws.choose(len(classes), k).tolist() for _ in range(n_parties)]
    held = set().union(*chosen)
    while len(held) < len(classes):
        for label in classes - held:
            party = draws.below(n_parties)
            chosen[party][draws.below(k)] = label
        held = set().union(*chosen)
    return chosen


def deal_by_mixture(
    draws: LegacyDraws, pools: LabelPools, n_parties: int, beta: float, min_each: int, even: bool
) -> Dealt:
    """Return the split `dir`: min_each of each class to each party, then by a multinomial draw.

    even: parties are cut, or filled up with examples that earlier parties have not, to N // P.
    """
    n_classes = int(pools[0].max()) + 1
    shares = [draws.dirichlet(beta, n_parties) for _ in range(n_classes)]
    if np.isnan(shares).any():
        raise UsageError(f"beta {beta} is so small that all proportions are 0; take a larger beta")
    dealt = []
    for number, labels in enumerate(pools):
        _require_examples(len(labels), n_parties * min_each)
        orders = [np.flatnonzero(labels == label) for label in range(n_classes)]
        for order in orders:
            draws.shuffle(order)
        given = min_each if number == 0 else 0  # of the examples to train on alone
        parties = _give_least(orders, n_parties, given)
        used = np.concatenate([place for party in parties for place in party])
        left = _leave_out(len(labels), used)
        for label, proportions in enumerate(shares):
            rest = left[labels[left] == label]
            draws.shuffle(rest)
            counts = draws.multinomial(len(rest), proportions)
            for party, run in zip(parties, split_by_class(rest, counts), strict=True):
                party.append(run)
        joined = [np.concatenate(party) for party in parties]
        dealt.append(_even_out(draws, joined, len(labels)) if even else joined)
    return dealt


def _give_least(orders: list[Ints], n_parties: int, min_each: int) -> list[list[Ints]]:
    """Return each party's first places, min_each of each class in the order of the class."""
    fewest = min(len(order) for order in orders)
    if fewest < n_parties * min_each:
        raise UsageError(
            f"a class has {fewest} examples to train on, {n_parties} parties need {min_each} each; "
            f"lower min_each to at most {fewest // n_parties}"
        )
    return [
        [order[party * min_each : (party + 1) * min_each] for order in orders]
        for party in range(n_parties)
    ]


def _even_out(draws: LegacyDraws, parties: list[Ints], n: int) -> list[Ints]:
    """Return the parties, each with n // P places by lot."""
    size = n // len(parties)
    evened: list[Ints] = []
    used = np.zeros(0, np.int64)
    for held in parties:
        if len(held) > size:
            held = held[draws.choose(len(held), size)]
        elif len(held) < size:
            unused = _leave_out(n, used)
            more = unused[draws.choose(len(unused), size - len(held))]
            held = np.concatenate([held, more])
        evened.append(held)
        used = np.concatenate([used, held])
    return evened


def _leave_out(n: int, used: Ints) -> Ints:
    """Return what is left of 0..n-1, in the order in which a set of python's has it."""
    is_left = np.ones(n, bool)
    is_left[used] = False
    left = np.flatnonzero(is_left)
    if 4 * len(left) > 3 * n:  # in a table of more places than n each number has its own
        return left
    return np.array(list(set(range(n)) - set(used.tolist())), np.int64)


def deal_shards(draws: LegacyDraws, pools: LabelPools, n_parties: int, shards: int) -> Dealt:
    """Return the split `pathological`: runs of the pool sorted by class; the last may be short."""
    order = draws.permutation(n_parties * shards)
    party_of = np.empty(len(order), np.int64)
    party_of[order] = np.repeat(np.arange(n_parties), shards)
    dealt = []
    for labels in pools:
        size = -(-len(labels) // len(order))
        owner = np.empty(len(labels), np.int64)
        owner[sort_by_class(labels)] = np.repeat(party_of, size)[: len(labels)]
        dealt.append(_list_held(owner, n_parties))
    return dealt


def _list_held(owner: Ints, n_parties: int) -> list[Ints]:
    """Return the places of each party, ascending. An owner beyond the parties is nobody."""
    order = sort_by_class(owner)
    return split_by_class(order, np.bincount(owner, minlength=n_parties))[:n_parties]


def _require_examples(n: int, least: int) -> None:
    if n < least:
        raise UsageError(
            f"the published code needs {least} examples of each pool, there are {n}; use fewer "
            "parties, a lower min_each or another test_ratio"
        )
