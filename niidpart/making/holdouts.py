"""Each party's examples into train, validation and test, so that all three have the party's own mix of classes."""

from fractions import Fraction

import numpy as np

from ..arithmetic.rng import Ints, Stream
from ..splits.part import PARTS, Part, make_empty_part, make_part


def hold_out(
    owner: Ints, labels: Ints, n_parties: int, n_classes: int, val: float, test: float, rng: Stream
) -> dict[str, Part]:
    """{"train", "val", "test": Part}. val, test: fractions of each party's examples, each rounded down over the party, then
    spread over its classes by largest remainder (equal remainders in random order)."""
    everything = make_part(owner, labels, n_parties, n_classes)
    if not val and not test:
        return {
            "train": everything,
            "val": make_empty_part(n_parties, n_classes),
            "test": make_empty_part(n_parties, n_classes),
        }
    order = rng.child("order").permutation(len(owner))
    order = order[owner[order] >= 0]
    cell = owner[order] * n_classes + labels[order]  # one cell for each (party, class)
    order = order[np.argsort(cell, kind="stable")]
    sizes = everything.counts.reshape(-1).astype(np.int64)
    cells = np.flatnonzero(sizes)
    sizes, party = sizes[cells], cells // n_classes
    tie = rng.child("rank").permutation(len(cells))
    n_test = _count_taken(sizes, sizes, party, test, everything.sizes, tie)
    n_val = _count_taken(sizes, sizes - n_test, party, val, everything.sizes, tie)
    which = np.repeat(
        np.tile([2, 1, 0], len(cells)),
        np.stack([n_test, n_val, sizes - n_test - n_val], axis=1).reshape(-1),
    )
    parts = {}
    for i, name in enumerate(PARTS):
        mine = np.full_like(owner, -1)
        mine[order[which == i]] = owner[order[which == i]]
        parts[name] = make_part(mine, labels, n_parties, n_classes)
    return parts


def _count_taken(
    sizes: Ints, room: Ints, party: Ints, fraction: float, party_sizes: Ints, tie: Ints
) -> Ints:
    """How many of each cell's `sizes` [C] go to a part: its share rounded down, then one more for the largest remainders of the party.

    The fraction is taken as the decimal number it is written as (0.29 is 29/100), to 9 digits, so that all of this is integer arithmetic.
    """
    share = Fraction(repr(fraction)).limit_denominator(10**9)
    over, under = share.numerator, share.denominator
    taken: Ints = np.minimum(sizes * over // under, room)
    left = party_sizes * over // under - np.bincount(
        party, weights=taken, minlength=len(party_sizes)
    ).astype(np.int64)
    remainder = np.where(taken < room, sizes * over % under, -1)
    ranking = np.lexsort((tie, -remainder, party))
    first = np.searchsorted(party[ranking], np.arange(len(party_sizes)))
    place = np.arange(len(ranking)) - first[party[ranking]]
    more = ranking[(place < left[party[ranking]]) & (remainder[ranking] >= 0)]
    taken[more] += 1
    return taken
