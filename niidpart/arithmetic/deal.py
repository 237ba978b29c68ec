"""From proportions to who holds what: counts by largest remainder, rows dealt by counts, a minimum size met by moving rows."""

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UsageError
from .exact import Floats
from .rng import Ints, Stream

_ROWS = 1 << 20  # looked at at a time
_CELLS = (
    1 << 24
)  # of a table of sets and items. Part of the definition of `draw_subsets`: another value gives other draws.


def apportion(proportions: Floats, total: int, rank: Ints) -> Ints:
    """[P] int64 counts in the given proportions that sum to `total`, in integer arithmetic.

    proportions: [P], non-negative, not all 0; they need not sum to 1. What is left after rounding down goes to the largest
    remainders; equal remainders are told apart by `rank` [P] (a random order), not by place.
    """
    weights = _weights(proportions, total)
    return apportion_weights(weights, total, rank)


def _weights(proportions: Floats, total: int) -> Ints:
    """[..., P] integers in the given proportions, the largest of each row 2**31; times a total below 2**31 they fit in int64."""
    if total >= 1 << 31:
        raise UsageError(
            f"{total} examples are to be dealt at once; counts by largest remainder are exact below {1 << 31}"
        )
    weights: Ints = np.rint(proportions / proportions.max(axis=-1, keepdims=True) * 2.0**31).astype(
        np.int64
    )
    return weights


def apportion_weights(weights: Ints, total: int, rank: Ints) -> Ints:
    """`apportion` of weights that are integers, 0..2**31 and not all 0: exact. With a total below their sum no count is above its weight."""
    counts: Ints
    counts, remainder = np.divmod(weights * total, int(weights.sum()))
    left = total - int(counts.sum())
    if left:
        bound = -np.partition(-remainder, left - 1)[
            left - 1
        ]  # the smallest remainder that still gets one
        ties = np.flatnonzero(remainder == bound)
        ties = ties[np.argsort(rank[ties])]
        counts[remainder > bound] += 1
        counts[ties[: left - np.count_nonzero(remainder > bound)]] += 1
    return counts


def apportion_rows(proportions: Floats, totals: Ints, rank: Ints) -> Ints:
    """[R, C] int64: `apportion` of each row of `proportions` [R, C] with its own total [R]; rank [C] tells equal remainders apart."""
    weights = _weights(proportions, int(totals.max(initial=0)))
    counts: Ints
    counts, remainder = np.divmod(weights * totals[:, None], weights.sum(axis=1, keepdims=True))
    left = totals - counts.sum(axis=1)
    order = np.lexsort((np.broadcast_to(rank, weights.shape), -remainder), axis=1)
    more = np.arange(weights.shape[1]) < left[:, None]
    np.put_along_axis(counts, order, np.take_along_axis(counts, order, 1) + more, 1)
    return counts


def split_evenly(total: int, n: int) -> Ints:
    """[n] int64 counts that sum to `total` and differ by at most 1; the first ones are the larger."""
    return np.full(n, total // n, np.int64) + (np.arange(n) < total % n)


def tally(owner: NDArray[Any], n_parties: int) -> Ints:
    """[P] how many rows each party owns; a block at a time, since numpy's bincount takes a copy of narrow integers."""
    sizes = np.zeros(n_parties, np.int64)
    for start in range(0, len(owner), _ROWS):
        sizes += np.bincount(owner[start : start + _ROWS], minlength=n_parties)
    return sizes


def deal_rows(counts: Ints, order: Ints) -> Ints:
    """[N] the party that holds each row. counts [K, P]: rows of class k that party p gets; order [N]: all rows, class by class, as they are dealt."""
    owner: NDArray[Any] = np.empty(len(order), np.int32)  # half the memory of int64 to move about
    owner[order] = np.repeat(
        np.tile(np.arange(counts.shape[1], dtype=np.int32), len(counts)), counts.reshape(-1)
    )
    return owner


def draw_subsets(rng: Stream, sizes: Ints, n: int) -> tuple[Ints, Ints]:
    """For each of `sizes` [S] an independent, uniformly random set of so many of 0..n-1: (set, item), each [sizes.sum()], ascending.

    Items are drawn until a set has enough different ones; of a set that would hold more than half, what it leaves out is drawn.
    """
    found: list[tuple[Ints, Ints]] = []
    step = max(1, _CELLS // max(n, 1))
    for start in range(0, len(sizes), step):
        some = sizes[start : start + step]
        inverted = some > n // 2
        goal = np.where(inverted, n - some, some)
        if (
            not inverted.any() and 32 * int(goal.sum()) < len(some) * n
        ):  # few of many: the same draws, without a table
            which, item = np.divmod(_distinct(rng, goal, n), n)
        else:
            drawn = np.zeros((len(some), n), bool)
            while (missing := goal - np.count_nonzero(drawn, axis=1)).any():
                which = np.repeat(np.arange(len(some)), missing)
                drawn[which, rng.integers(n, len(which))] = True
            which, item = np.nonzero(drawn ^ inverted[:, None])
        found.append((which + start, item))
    return np.concatenate([a for a, _ in found]), np.concatenate([b for _, b in found])


def _distinct(rng: Stream, goal: Ints, n: int) -> Ints:
    """set * n + item, ascending, of sets of `goal` [S] items each."""
    keys, missing = np.zeros(0, np.int64), goal
    while missing.any():
        which = np.repeat(np.arange(len(goal)), missing)
        keys = np.unique(np.concatenate([keys, which * n + rng.integers(n, len(which))]))
        missing = goal - np.bincount(keys // n, minlength=len(goal))
    return keys


def deal_to_fewest(sizes: Ints, n_parties: int, order: Ints, rank: Ints) -> Ints:
    """[G] the party of each group: from the largest on, one after another, to the party that has fewest examples so far.

    sizes: [G] examples of each group. Equal groups go by `order` [G], equal parties by `rank` [P], random orders of both.
    """
    party = np.empty(len(sizes), np.int64)
    heap = [(0, place, p) for p, place in enumerate(rank.tolist())]
    heapq.heapify(heap)
    for g in order[np.argsort(-sizes[order], kind="stable")].tolist():
        held, place, p = heap[0]
        heapq.heapreplace(heap, (held + int(sizes[g]), place, p))
        party[g] = p
    return party


def require_feasible(n: int, n_parties: int, min_size: int) -> None:
    """Refuses a minimum size that no deal of `n` examples can meet."""
    if min_size < 0:
        raise UsageError(f"min_size is {min_size}; it must be 0 or more")
    if n_parties * min_size > n:
        raise UsageError(
            f"{n_parties} parties x min_size {min_size} need {n_parties * min_size} examples, there are {n}; "
            f"lower min_size to {n // n_parties} or use at most {n // min_size} parties"
        )


def fill_up(
    owner: Ints, labels: Ints, n_parties: int, min_size: int, rank: Ints, order: Ints
) -> tuple[Ints, NDArray[np.int64]]:
    """Moves rows until every party holds `min_size`: (new owner [N], moved [M, 3] of row, from, to).

    One row at a time goes from the party that is largest at the time to a short one: of the class that the short party holds most
    of, where the donor has it, else of the donor's own most frequent class. Ties are settled by `rank` [P], a random order of the parties, and
    which of the donor's rows goes by `order` [N], a random order of the examples. Labels that are all one: the class plays no part.
    Nothing is redrawn, so this always ends; `require_feasible` has to hold.
    """
    sizes = tally(owner, n_parties)
    short = np.flatnonzero(sizes < min_size)
    if not short.size:
        return owner, np.zeros((0, 3), np.int64)
    rows = order[np.argsort(owner[order], kind="stable")]
    ends = np.cumsum(sizes)
    held = {}  # party -> {class: its rows}, made when the party is first looked at

    def classes(party: int) -> dict[int, list[int]]:
        if party not in held:
            mine = rows[ends[party] - sizes[party] : ends[party]]
            held[party] = {
                int(k): mine[labels[mine] == k].tolist() for k in np.unique(labels[mine])
            }
        return held[party]

    donors = [(-int(sizes[p]), int(rank[p]), int(p)) for p in np.flatnonzero(sizes > min_size)]
    heapq.heapify(donors)
    moved = []
    for party in short[np.argsort(rank[short], kind="stable")].tolist():
        liked = sorted(classes(party), key=lambda k: (-len(held[party][k]), k))
        for _ in range(min_size - int(sizes[party])):
            size, place, donor = heapq.heappop(donors)
            theirs = classes(donor)
            label = next((k for k in liked if theirs.get(k)), None)
            if label is None:
                label = max(theirs, key=lambda k: (len(theirs[k]), -k))
            moved.append((theirs[label].pop(), donor, party))
            if -size - 1 > min_size:
                heapq.heappush(donors, (size + 1, place, donor))
    moves = np.array(moved, np.int64)
    owner = owner.copy()
    owner[moves[:, 0]] = moves[:, 2]
    return owner, moves
