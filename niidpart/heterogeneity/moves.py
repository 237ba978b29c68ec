"""Parties that were filled up to a minimum size: what they may have held before.

Counts do not say which examples were moved, but the draws say from whom to whom: what a party got
is of classes that those who gave it hold.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from .resample import draw_kept
from .tables import PartyCounts


class MovedCounts(NamedTuple):
    """Counts [S, K] of some parties, and what was moved among them.

    received, given: [S] examples. is_given: [S, K], whether those who gave to a party hold the
    class.
    """

    counts: Ints
    received: Ints
    given: Ints
    is_given: NDArray[np.bool_]

    @classmethod
    def of(cls, table: PartyCounts, who: Ints, moves: Ints) -> Self:
        """Take the parties `who` [S] of a table, and moves [M, 2] from and to parties of it."""
        P, K = table.counts.shape
        sources, targets = moves.T
        is_taken = np.zeros(P, bool)
        is_taken[who] = True
        is_given = np.zeros((P, K), bool)
        pairs = np.unique(moves[is_taken[targets]], axis=0)
        for source, target in pairs.tolist():
            is_given[target] |= table.counts[source] > 0
        return cls(
            counts=table.counts[who].astype(np.int64),
            received=np.bincount(targets, minlength=P)[who],
            given=np.bincount(sources, minlength=P)[who],
            is_given=is_given[who],
        )

    def undo(self, R: int, rng: Stream) -> Floats:
        """Return [R, S, K]: counts as they may have been before anything was moved."""
        before = np.repeat(self.counts[None].astype(np.float64), R, axis=0)
        receivers = np.flatnonzero(self.received)
        if not receivers.size or not self.given.any():
            return before
        counts = self.counts[receivers]
        sizes = counts.sum(axis=1)
        n_back = np.minimum(self.received[receivers], sizes)
        likely = np.where(self.is_given[receivers], counts, 0)
        n_likely = np.minimum(n_back, likely.sum(axis=1))
        back = _draw_some(n_likely, likely, R, rng)
        # Who gave may hold nothing more of what it gave.
        back += _draw_some(n_back - n_likely, counts - likely, R, rng.child("others"))
        before[:, receivers] -= back
        before += self._share_among_givers() * back.sum(axis=1)[:, None, :]
        return before

    def _share_among_givers(self) -> Floats:
        """Return [S, K] the share of what goes back of a class that goes to each party.

        In proportion to what a party gave and to how much of the class it holds.
        """
        sizes = self.counts.sum(axis=1, keepdims=True)
        weight = self.given[:, None] * (self.counts / np.maximum(sizes, 1))
        is_held = weight.any(axis=0)
        weight = np.where(is_held, weight, self.given[:, None])
        share: Floats = weight / weight.sum(axis=0)
        return share


def _draw_some(sizes: Ints, counts: Ints, R: int, rng: Stream) -> Ints:
    """Return [R, M, K]: `sizes` [M] examples of each of some parties [M, K], at random, R times."""
    drawn = draw_kept(np.tile(sizes, R), np.tile(counts, (R, 1)), rng)
    return drawn.reshape(R, *counts.shape)
