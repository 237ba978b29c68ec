"""One part of two splits of the same data, compared row by row."""

from dataclasses import dataclass

import numpy as np

from ..arithmetic.rng import Ints
from ..splits.holdings import count_holdings
from ..splits.part import Part

# Parties up to which the best matching of names is looked for: its time is of the third power.
RELABELLED = 1_000


@dataclass(frozen=True)
class PartDifference:
    """One part (train, val, test) of two splits of the same data.

    n: examples in each. only: rows that the part of one holds and the other's does not. moved: rows
    in both, at other parties. agreement: the share of rows in both that stay, if the parties of b
    are renamed as suits best; None above 1,000 parties. adjusted_rand: Hubert and Arabie, J.
    Classification 2 (1985), equation 5; 1 for the same groups under other names, 0 as by chance.
    Both None where no row is in both, or parties share rows.
    """

    n: tuple[int, int]
    only: tuple[int, int]
    moved: int
    agreement: float | None
    adjusted_rand: float | None


def compare_parts(a: Part, b: Part) -> PartDifference:
    """Compare two parts of the same data."""
    rows_a, party_a = _list_pairs(a)
    rows_b, party_b = _list_pairs(b)
    if _has_repeats(rows_a) or _has_repeats(rows_b):
        return _compare_shared(a, b)
    _, at_a, at_b = np.intersect1d(rows_a, rows_b, assume_unique=True, return_indices=True)
    # The parties of each row that is in both.
    mine = party_a[at_a]
    theirs = party_b[at_b]
    n_both = len(mine)
    agreement = adjusted = None
    if n_both:
        # The table of (party in a, party in b), of which only the cells that occur are kept: all
        # of it would be P x P numbers.
        cell = mine * b.n_parties + theirs
        cells, times = np.unique(cell, return_counts=True)
        adjusted = _compute_adjusted_rand(times, np.bincount(mine), np.bincount(theirs))
        if max(a.n_parties, b.n_parties) <= RELABELLED:
            n_stay = _count_best_match(cells, times, a.n_parties, b.n_parties)
            agreement = n_stay / n_both
    has_moved = mine != theirs
    return PartDifference(
        n=(a.n, b.n),
        only=(a.n - n_both, b.n - n_both),
        moved=int(has_moved.sum()),
        agreement=agreement,
        adjusted_rand=adjusted,
    )


def describe_same_part(part: Part) -> PartDifference:
    """Return what `compare_parts` finds of a part with rows and the same part again."""
    n_distinct, _ = count_holdings([part], int(part.indices.max()) + 1)
    is_shared = n_distinct < part.n
    return PartDifference(
        n=(part.n, part.n),
        only=(0, 0),
        moved=0,
        agreement=1.0 if not is_shared and part.n_parties <= RELABELLED else None,
        adjusted_rand=None if is_shared else 1.0,
    )


def _list_pairs(part: Part) -> tuple[Ints, Ints]:
    """Return (rows ascending, the party of each)."""
    party = np.repeat(np.arange(part.n_parties), part.sizes)
    order = np.argsort(part.indices, kind="stable")
    rows = part.indices[order].astype(np.int64)
    return rows, party[order]


def _has_repeats(rows: Ints) -> bool:
    """Return whether some of the rows, which ascend, are equal."""
    steps = np.diff(rows)
    return bool((steps == 0).any())


def _compare_shared(a: Part, b: Part) -> PartDifference:
    """Compare parts in which parties share rows: a row has moved if other parties hold it.

    Which group is which has no one answer then.
    """
    rows_a, party_a = _list_pairs(a)
    rows_b, party_b = _list_pairs(b)
    # A pair of row and party as one number, so that pairs of one row stand together.
    width = max(a.n_parties, b.n_parties)
    pairs_a = rows_a * width + party_a
    pairs_b = rows_b * width + party_b
    in_one_only = np.setxor1d(pairs_a, pairs_b)
    different = np.unique(in_one_only // width)  # rows
    in_a = np.unique(rows_a)
    in_b = np.unique(rows_b)
    both = np.intersect1d(in_a, in_b, assume_unique=True)
    is_in_both = np.isin(different, both, assume_unique=True)
    moved = int(is_in_both.sum())
    n_both = len(both)
    only = (len(in_a) - n_both, len(in_b) - n_both)
    return PartDifference((a.n, b.n), only, moved, agreement=None, adjusted_rand=None)


def _compute_adjusted_rand(cells: Ints, mine: Ints, theirs: Ints) -> float:
    """Return the index from the sizes of the groups' intersections, and of the groups.

    (together - expected) / (mean of in_a and in_b - expected), expected = in_a in_b / pairs; all
    times 2 pairs, so that everything before the last division is a whole number.
    """
    together = _count_pairs(cells)
    in_a = _count_pairs(mine)
    in_b = _count_pairs(theirs)
    n = int(cells.sum())
    pairs = n * (n - 1) // 2
    above_chance = together * pairs - in_a * in_b
    room = (in_a + in_b) * pairs - 2 * in_a * in_b
    if room == 0:  # both are one group, or both are single rows: the same grouping
        return 1.0
    return 2 * above_chance / room


def _count_pairs(sizes: Ints) -> int:
    """Return the pairs within groups, in python's whole numbers, which do not overflow."""
    return sum(n * (n - 1) // 2 for n in sizes.tolist())


def _count_best_match(cells: Ints, times: Ints, n_a: int, n_b: int) -> int:
    """Return the most rows that stay at their party under one renaming of the parties."""
    from scipy.optimize import linear_sum_assignment

    table = np.zeros((n_a, n_b), np.int64)
    table.reshape(-1)[cells] = times
    match = linear_sum_assignment(table, maximize=True)
    return int(table[match].sum())
