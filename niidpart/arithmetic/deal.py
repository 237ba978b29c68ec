"""From proportions to who holds what.

Counts by largest remainder, rows dealt by counts, and a minimum size met by moving rows. All of it
is integer arithmetic, and ties are settled by random orders that the caller draws: by a place in
an array they would favour the first parties.
"""

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .filling import fill_up, require_feasible, tally
from .rng import Ints, Stream
from .shares import apportion, apportion_rows, apportion_weights

__all__ = [
    "apportion",
    "apportion_rows",
    "apportion_weights",
    "deal_rows",
    "deal_to_fewest",
    "draw_subsets",
    "fill_up",
    "repeat_evenly",
    "require_feasible",
    "split_by_class",
    "split_evenly",
    "tally",
]

# Sets times items that are drawn at once. Part of the definition of `draw_subsets`: another value
# gives other draws.
_CELLS = 1 << 24


def split_evenly(total: int, n: int) -> Ints:
    """Return counts that differ by at most 1, larger ones first.

    Parameters
    ----------
    total : int
    n : int
        How many counts.

    Returns
    -------
    array of int64 [n]
        Counts that sum to `total`.

    Examples
    --------
    >>> split_evenly(11, 3).tolist()
    [4, 4, 3]
    """
    each, n_larger = divmod(total, n)
    counts = np.full(n, each, np.int64)
    counts[:n_larger] += 1
    return counts


def repeat_evenly(holders: NDArray[Any], n: int) -> NDArray[Any]:
    """Return who gets each of n things: each holder equally often, the first ones once more.

    Parameters
    ----------
    holders : array [H]
    n : int
        How many things.

    Returns
    -------
    array [n]
        The holders, each repeated, in their order.

    Examples
    --------
    >>> repeat_evenly(np.array([7, 3]), 5).tolist()
    [7, 7, 7, 3, 3]
    """
    return np.repeat(holders, split_evenly(n, len(holders)))


def split_by_class(order: Ints, class_sizes: Ints) -> list[Ints]:
    """Return the rows of each class.

    Parameters
    ----------
    order : array of int [N]
        All rows, class by class, as `Stream.grouped_permutation` returns them.
    class_sizes : array of int [K]
        How many rows each class has.

    Returns
    -------
    list of K arrays of int
        Entry k has the rows of class k, in their order.

    Examples
    --------
    >>> [rows.tolist() for rows in split_by_class(np.array([2, 0, 1]), np.array([1, 2]))]
    [[2], [0, 1]]
    """
    ends = np.cumsum(class_sizes, dtype=np.int64)
    cuts = ends[:-1]
    return np.split(order, cuts)


def deal_rows(counts: Ints, order: Ints) -> Ints:
    """Return the party that holds each row.

    Parameters
    ----------
    counts : array of int [K, P]
        How many rows of class k party p gets.
    order : array of int [N]
        All rows, class by class, in the order in which they are dealt.

    Returns
    -------
    array of int32 [N]

    Examples
    --------
    >>> deal_rows(np.array([[1, 0], [1, 1]]), np.array([2, 0, 1])).tolist()
    [0, 1, 0]
    """
    n_classes, n_parties = counts.shape
    # int32: half the memory of int64 to move about
    parties = np.arange(n_parties, dtype=np.int32)
    party_of_cell = np.tile(parties, n_classes)
    party_in_order = np.repeat(party_of_cell, counts.reshape(-1))
    owner: NDArray[Any] = np.empty(len(order), np.int32)
    owner[order] = party_in_order
    return owner


def draw_subsets(rng: Stream, sizes: Ints, n: int) -> tuple[Ints, Ints]:
    """Return independent, uniformly random sets of 0..n-1.

    Parameters
    ----------
    rng : Stream
    sizes : array of int [S]
        How many items each set has, at most n.
    n : int
        How many items there are.

    Returns
    -------
    set, item : arrays of int64 [sizes.sum()]
        Sets ascend, and items within a set.

    Examples
    --------
    >>> from niidpart.arithmetic.rng import stream
    >>> which, item = draw_subsets(stream(0, "example"), np.array([2, 1]), 5)
    >>> which.tolist(), item.tolist()
    ([0, 0, 1], [0, 4, 2])
    """
    # Items are drawn until a set has enough different ones; of a set that would hold more than
    # half, what it leaves out is drawn.
    found = []
    step = max(1, _CELLS // max(n, 1))
    for start in range(0, len(sizes), step):
        some = sizes[start : start + step]
        is_inverted = some > n // 2
        goal = np.where(is_inverted, n - some, some)
        cells = _draw_cells(rng, goal, n)
        if is_inverted.any():
            cells = _invert_sets(cells, is_inverted, n)
        found.append(cells + start * n)
    every = np.concatenate(found)
    sets = every // n
    items = every - sets * n  # a division by one number is vectorised, a remainder is not
    return sets, items


def _draw_cells(rng: Stream, goal: Ints, n: int) -> Ints:
    """Return the cells set * n + item, ascending, of sets of `goal` [S] items."""
    found = [np.zeros(0, np.int64)]
    missing = goal
    while missing.any():
        sets = np.repeat(np.arange(len(goal)), missing)
        cells = sets * n + rng.integers(n, len(sets))
        cells.sort()
        is_first = np.ones(len(cells), bool)
        np.not_equal(cells[1:], cells[:-1], out=is_first[1:])
        cells = cells[is_first]
        for earlier in found[1:]:
            cells = cells[~_is_among(cells, earlier)]
        if cells.size:
            found.append(cells)
        missing = missing - np.bincount(cells // n, minlength=len(goal))
    every = np.concatenate(found)
    every.sort()
    return every


def _is_among(values: Ints, ascending: Ints) -> NDArray[np.bool_]:
    """Return which values are among those of an array that has some, which ascend."""
    places = np.searchsorted(ascending, values)
    places = np.minimum(places, len(ascending) - 1)
    is_there: NDArray[np.bool_] = ascending[places] == values
    return is_there


def _invert_sets(cells: Ints, is_inverted: NDArray[np.bool_], n: int) -> Ints:
    """Return the cells of sets of which some hold what was not drawn, ascending."""
    inverted = np.flatnonzero(is_inverted)
    row = np.cumsum(is_inverted, dtype=np.int64) - 1  # of an inverted set in the table below
    sets = cells // n
    is_left_out = is_inverted[sets]
    out_sets = sets[is_left_out]
    is_held = np.ones(len(inverted) * n, bool)
    is_held[cells[is_left_out] - (out_sets - row[out_sets]) * n] = False
    held = np.flatnonzero(is_held)
    rows = held // n
    held += (inverted[rows] - rows) * n
    every = np.concatenate([cells[~is_left_out], held])
    every.sort()
    return every


def deal_to_fewest(sizes: Ints, n_parties: int, order: Ints, rank: Ints) -> Ints:
    """Return the party of each group, for parties with about equally many examples.

    From the largest on, a group goes to the party that has fewest examples so far.

    Parameters
    ----------
    sizes : array of int [G]
        Examples of each group.
    n_parties : int
    order : array of int [G]
        A random order of the groups, by which equal ones go.
    rank : array of int [P]
        A random order of the parties, by which equal ones go.

    Returns
    -------
    array of int64 [G]

    Examples
    --------
    >>> deal_to_fewest(np.array([5, 2, 4]), 2, np.arange(3), np.arange(2)).tolist()
    [0, 1, 1]
    """
    party = np.empty(len(sizes), np.int64)
    # (examples, rank, party): the smallest is next. Ranks differ, so there are no ties.
    heap = [(0, place, p) for p, place in enumerate(rank.tolist())]
    heapq.heapify(heap)
    # A stable sort keeps the random order among groups of one size.
    by_size = np.argsort(-sizes[order], kind="stable")
    largest_first = order[by_size]
    for g in largest_first.tolist():
        n_held, place, p = heap[0]
        n_held += int(sizes[g])
        heapq.heapreplace(heap, (n_held, place, p))
        party[g] = p
    return party
