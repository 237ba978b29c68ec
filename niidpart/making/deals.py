"""A strategy's deal carried out in memory: which examples go where."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.deal import fill_up
from ..arithmetic.rng import Ints
from ..errors import UsageError
from ..strategies import Deal, Owners
from .orders import EarlyOrder

_UNWRITTEN = -2  # no holder's number: -1 is nobody


def carry_out(deal: Deal, labels: Ints, n_parties: int, orders: EarlyOrder) -> Owners:
    """Return who owns what. labels: [N]. orders: of the strategy that made the deal."""
    n = len(labels)
    require_whole(deal, n, n_parties)
    # int32: half the memory of int64 to move about
    owner: NDArray[Any] = np.empty(n, np.int32)
    holders = deal.holders.astype(np.int32, copy=False)
    if deal.order is None:
        order = orders.take(by_class=deal.by_class)
        owner[order] = np.repeat(holders, deal.sizes)
    else:
        order = _require_rows(deal.order, n)
        owner.fill(_UNWRITTEN)
        owner[order] = np.repeat(holders, deal.sizes)
        if owner.min() == _UNWRITTEN:
            raise UsageError(f"the deal's order lacks row {owner.argmin()}; it needs each row once")
    if deal.rank is None:
        return Owners(owner, deal.draws)
    ordered_by = labels if deal.by_class else np.zeros(n, np.int64)
    fill = _fill_up_held if holders[deal.sizes > 0].min() < 0 else fill_up
    owner, moved = fill(owner, ordered_by, n_parties, deal.min_size, deal.rank, order)
    return Owners(owner, {**deal.draws, "moved": moved})


def _require_rows(order: Any, n: int) -> Ints:
    """Return a deal's own order, which may be of a user's strategy; UsageError unless n rows."""
    is_array = isinstance(order, np.ndarray) and order.dtype.kind in "iu"
    if is_array and order.shape == (n,) and order.min() >= 0 and order.max() < n:
        rows: Ints = order
        return rows
    kind = f"{type(order).__name__} {order!s:.60}"
    needed = f"an array of the integers 0..{n - 1}, each once, is needed"
    raise UsageError(f"the deal's order is the {kind}; {needed}")


def _fill_up_held(
    owner: NDArray[Any],
    labels: Ints,
    n_parties: int,
    min_size: int,
    rank: Ints,
    order: Ints,
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Do what `fill_up` does, with the rows that somebody holds alone: the others stay nobody's."""
    rows = np.flatnonzero(owner >= 0)
    place = np.full(len(owner), -1)
    place[rows] = np.arange(len(rows))
    places = place[order]
    held_order = places[places >= 0]
    held_owner, moved = fill_up(owner[rows], labels[rows], n_parties, min_size, rank, held_order)
    owner = owner.copy()
    owner[rows] = held_owner
    moved[:, 0] = rows[moved[:, 0]]
    return owner, moved


def require_whole(deal: Deal, n: int, n_parties: int) -> None:
    """Raise UsageError unless a deal, which may be of a user's own strategy, deals n examples."""
    total = int(deal.sizes.sum(dtype=np.int64))
    is_dealt = len(deal.holders) == len(deal.sizes) and deal.sizes.min() >= 0 and total == n
    low, high = deal.holders.min(), deal.holders.max()
    if low < -1 or high >= n_parties:
        needed = f"-1 (nobody) to {n_parties - 1} are needed"
        raise UsageError(f"the deal is among the holders {low}..{high}; {needed}")
    if is_dealt:
        return
    got = f"{len(deal.sizes)} sizes that sum to {total}, for {len(deal.holders)} holders"
    raise UsageError(f"the deal has {got}; a size for each holder, {n} in all, is needed")
