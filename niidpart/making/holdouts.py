"""Each party's examples into train, val and test, so that all have the party's mix of classes."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints, Stream
from ..splits.part import PARTS, Part, make_empty_part
from ..splits.part_making import make_part


def hold_out(
    owner: Ints,
    labels: Ints,
    n_parties: int,
    n_classes: int,
    val: float,
    test: float,
    rng: Stream,
) -> dict[str, Part]:
    """Return {"train", "val", "test": Part}.

    val, test: fractions of each party's examples, each rounded down over the party, then spread
    over its classes by largest remainder (equal remainders in random order).
    """
    everything = make_part(owner, labels, n_parties, n_classes)
    if not val and not test:
        empty = make_empty_part(n_parties, n_classes)
        return {"train": everything, "val": empty, "test": empty}
    cuts = plan_cuts(everything.counts, val, test, rng)
    # Of each cell's rows in random order the first go to test, the next to val, the rest to train.
    rows = _order_by_cell(owner, labels, n_classes, rng)
    taken = np.stack([cuts.n_test, cuts.n_val, cuts.n_train], axis=1).reshape(-1)
    order = [PARTS.index(name) for name in ("test", "val", "train")]
    which = np.repeat(np.tile(order, len(cuts.cells)), taken)
    parts = {}
    for i, name in enumerate(PARTS):
        in_part = rows[which == i]
        owner_of_part = np.full_like(owner, -1)
        owner_of_part[in_part] = owner[in_part]
        parts[name] = make_part(owner_of_part, labels, n_parties, n_classes)
    return parts


class Cuts(NamedTuple):
    """Cells, which are party * K + class, that have examples, and how many go to each part."""

    cells: Ints
    n_test: Ints
    n_val: Ints
    n_train: Ints


def plan_cuts(counts: NDArray[np.int32], val: float, test: float, rng: Stream) -> Cuts:
    """Return how many examples of each party and class go to each part. counts: [P, K]."""
    n_classes = counts.shape[1]
    sizes = counts.reshape(-1).astype(np.int64)
    party_sizes = counts.sum(axis=1, dtype=np.int64)
    cells = np.flatnonzero(sizes)  # one cell for each (party, class) that has examples
    sizes, party = sizes[cells], cells // n_classes
    tie = rng.child("rank").permutation(len(cells))
    n_test = _count_taken(sizes, sizes, party, test, party_sizes, tie)
    room = sizes - n_test
    n_val = _count_taken(sizes, room, party, val, party_sizes, tie)
    return Cuts(cells, n_test, n_val, room - n_val)


def _order_by_cell(owner: Ints, labels: Ints, n_classes: int, rng: Stream) -> Ints:
    """Return all rows that somebody holds, by party and class, in random order within these."""
    order = rng.child("order").permutation(len(owner))
    order = order[owner[order] >= 0]
    cell = owner[order] * n_classes + labels[order]
    return order[np.argsort(cell, kind="stable")]


def _count_taken(
    sizes: Ints,
    room: Ints,
    party: Ints,
    fraction: float,
    party_sizes: Ints,
    tie: Ints,
) -> Ints:
    """Return how many of each cell's `sizes` [C] go to a part.

    Its share rounded down, then one more for the largest remainders of the party, as long as there
    is `room` [C]. party: [C] the party of each cell, ascending. party_sizes: [P]. tie: [C] a random
    order, which tells equal remainders apart.
    """
    # The fraction is taken as the decimal number that it is written as (0.29 is 29/100), to 9
    # digits, so that all of this is integer arithmetic.
    share = Fraction(repr(fraction)).limit_denominator(10**9)
    over, under = share.numerator, share.denominator
    share_down = sizes * over // under
    taken: Ints = np.minimum(share_down, room)
    left = party_sizes * over // under
    np.subtract.at(left, party, taken)  # what each party still has to give
    remainder = np.where(taken < room, sizes * over % under, -1)
    ranking = np.lexsort((tie, -remainder, party))
    # The place of each cell in the ranking of its own party.
    party_ranked = party[ranking]
    parties = np.arange(len(party_sizes))
    first = np.searchsorted(party_ranked, parties)
    place = np.arange(len(ranking)) - first[party_ranked]
    has_room = remainder[ranking] >= 0
    gets_more = has_room & (place < left[party_ranked])
    taken[ranking[gets_more]] += 1
    return taken
