"""A strategy's deal carried out on the disk: `making/deals.py` does it in memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..arithmetic.order_keys import OrderKeys
from ..arithmetic.rng import Ints, Stream
from ..arithmetic.words import Array
from ..disk.arrays import ArrayFile
from ..disk.progress import iterate_told, tell
from ..disk.sorting import SortedRuns
from ..making.deals import require_whole
from ..strategies import Deal
from .moves import Moves, plan_moves

_PARTY_BITS = np.uint64(32)  # of a word whose upper half is a row
_PARTY_MASK = np.uint64((1 << 32) - 1)


class OwnersOnDisk(NamedTuple):
    """owner: [N] int32 in a file. moved: [M, 3] row, from, to; None where nothing is filled up."""

    owner: Array
    moved: Ints | None


def carry_out_on_disk(
    deal: Deal,
    labels: Array,
    class_sizes: Ints,
    n_parties: int,
    rng: Stream,
    folder: Path,
) -> OwnersOnDisk:
    """Return who owns what, as `carry_out` does. labels: [N]. folder: a scratch folder."""
    n = len(labels)
    require_whole(deal, n, n_parties)
    moves = plan_moves(deal, class_sizes, n_parties)
    moved = np.zeros((len(moves.places), 3), np.int64)
    moved[:, 1], moved[:, 2] = moves.givers, moves.receivers
    n_classes = len(class_sizes) if deal.by_class else 1
    ends = np.cumsum(deal.sizes, dtype=np.int64)
    with SortedRuns(folder / "by_row") as by_row:
        start = 0
        for rows in iterate_order(labels, n_classes, rng.child("order"), folder):
            owner = _take_owners(deal.holders, ends, start, len(rows))
            _move(moves, start, rows, owner, moved)
            by_row.add(_join(rows, owner))
            start += len(rows)
            tell("dealing", start, n)
        owners = ArrayFile(folder / "owner", np.int32)
        for words in by_row.iterate():
            owners.append((words & _PARTY_MASK).astype(np.int64) - 1)
            tell("sorting by row", owners.n, n)
    return OwnersOnDisk(owners.finish(), None if deal.rank is None else moved)


def iterate_order(labels: Array, n_classes: int, rng: Stream, folder: Path) -> Iterator[Ints]:
    """Go through `rng.grouped_permutation(labels, n_classes)`, some rows at a time."""
    keys = OrderKeys.of(len(labels), n_classes)
    with SortedRuns(folder / "by_order") as by_order:
        for start, classes in iterate_told(labels, "ordering"):
            by_order.add(keys.compose(rng.words(len(classes)), start, classes))
        for words in by_order.iterate():
            yield keys.take_indices(words)


def _take_owners(holders: Array, ends: Ints, start: int, n: int) -> Ints:
    """Return [n] the party of each place start, start + 1, ... of the order.

    ends: [R] where the run of each holder ends.
    """
    first = int(np.searchsorted(ends, start, side="right"))
    last = int(np.searchsorted(ends, start + n))
    bounds = np.clip(ends[first : last + 1], start, start + n)
    lengths = np.diff(bounds, prepend=start)
    return np.repeat(holders[first : last + 1].astype(np.int64), lengths)


def _move(moves: Moves, start: int, rows: Ints, owner: Ints, moved: Ints) -> None:
    """Carry out the moves among some places of the order, and note their rows."""
    places = moves.places - start
    here = np.flatnonzero((places >= 0) & (places < len(rows)))
    owner[places[here]] = moves.receivers[here]
    moved[here, 0] = rows[places[here]]


def _join(rows: Ints, owner: Ints) -> Array:
    """Return words that sort by row, with the party, or -1, below."""
    words = rows.astype(np.uint64)
    words <<= _PARTY_BITS
    words |= (owner + 1).astype(np.uint64)
    return words
