"""How many examples of the data set the parts of a split hold, and how many of them twice."""

from collections.abc import Iterable

import numpy as np

from ..disk.arrays import iterate_pieces
from ..disk.progress import tell_many
from .part import Part

# More examples than so many times the rows that are held (and a few) are numbered by the held ones.
_FEW_OF_MANY = 8
_A_FEW = 65536


def count_holdings(parts: Iterable[Part], n: int) -> tuple[int, int]:
    """Return (distinct examples in the parts, rows that an earlier part has as well).

    n: examples of the data set. Memory grows with the rows held, not with n.
    """
    rows = [part.indices for part in parts]
    n_rows = sum(len(r) for r in rows)
    if n > _FEW_OF_MANY * n_rows + _A_FEW:
        kept = np.unique(np.concatenate(rows))
        rows = [np.searchsorted(kept, r) for r in rows]
        n = len(kept)
    held = np.zeros(n, bool)
    across = 0
    for r in rows:
        for _, some in iterate_pieces(r):
            across += int(np.count_nonzero(held[some]))
        for start, some in iterate_pieces(r):  # a part may have a row twice, which is not across
            held[some] = True
            tell_many("looking for shared rows", start + len(some), len(r))
    return int(np.count_nonzero(held)), across
