"""Which parties a picture shows, and in which order."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..errors import UsageError
from ..splits.split import FederatedSplit
from ._look import choose_evenly, choose_labelled, measure_text, smallest_font

_MOST = 1 << 20  # parties in one range of numbers

Order = Literal["auto", "party", "size", "class"]
ORDER_HELP = "Order of the parties; auto is by number while each has room for it, else by class."
_BY = {
    "party": "party",
    "size": "parties, largest first",
    "class": "parties, by their most frequent class",
}


def parse_parties(
    parties: str | Sequence[int] | NDArray[Any] | None, n_parties: int
) -> Ints | None:
    """Return [S] int64 of `0,3,7-9` or of numbers; None for None.

    UsageError where there is no such party, or one stands twice.
    """
    if parties is None:
        return None
    ids = _read_numbers(parties)
    if ids is None:
        advice = "numbers of parties are needed, such as 0,3,7-9"
        raise UsageError(f"parties are {parties!r}; {advice}")
    strange = ids[(ids < 0) | (ids >= n_parties)]
    if len(strange):
        raise UsageError(f"there is no party {strange[0]}; the parties are 0..{n_parties - 1}")
    if len(np.unique(ids)) < len(ids):
        raise UsageError(f"parties are {parties!r}; one of them stands twice")
    return ids.astype(np.int64)


def _read_numbers(parties: str | Sequence[int] | NDArray[Any]) -> NDArray[Any] | None:
    """The numbers as they came; None where they are none."""
    try:
        if isinstance(parties, str):
            pieces = [_read_range(piece) for piece in parties.split(",")]
            ids = np.concatenate(pieces)
        else:
            ids = np.array(parties)
    except ValueError:
        return None
    is_list = ids.ndim == 1 and len(ids) > 0
    if not is_list or ids.dtype.kind not in "iu":
        return None
    return ids


def _read_range(text: str) -> NDArray[Any]:
    """Return the numbers of `7-9` or of `3`; ValueError for anything else."""
    first, dash, last = text.strip().partition("-")
    if not dash:
        last = first
    span = range(int(first), int(last) + 1)
    # Before there is an array: a range of numbers is written in a few letters.
    if not 0 < len(span) <= _MOST:
        raise ValueError(text)
    return np.array(span)


def choose_parties(
    split: FederatedSplit, parties: Ints | None, limit: int, by: str = "size"
) -> tuple[Ints, str]:
    """Return (ids [S], which they are in words).

    Those asked for; else all, or where they are more than `limit`, some evenly by size or number.
    """
    n = split.n_parties
    if parties is not None:
        said = ""
        if len(parties) < n:
            said = f"{len(parties):,} of {n:,} parties, as asked"
        return parties, said
    ranked: Ints = np.arange(n)
    if n <= limit:
        return ranked, ""
    if by == "size":
        ranked = np.argsort(split.train.sizes, kind="stable")
    chosen = ranked[choose_evenly(n, limit)]
    return np.sort(chosen), f"{limit:,} of {n:,} parties, evenly by {by}"


def order_parties(
    split: FederatedSplit, ids: Ints, order: Order, labelled: int
) -> tuple[Ints, str]:
    """Return (ids [S] in order, the label of their axis).

    auto: by number while each has room for it, else by their most frequent class.
    """
    if order == "auto":
        order = "party" if len(ids) <= labelled else "class"
    if order == "size":
        sizes = split.train.sizes[ids]
        ids = ids[np.argsort(-sizes, kind="stable")]
    if order == "class":
        counts = split.train.counts[ids]
        most_frequent = counts.argmax(1)
        share = counts.max(1) / np.maximum(counts.sum(1), 1)
        # Of one class those that hold most of it first; lexsort takes the last key first.
        by_class = np.lexsort((-share, most_frequent))
        ids = ids[by_class]
    return ids, _BY[order]


def label_parties(ax: Any, ids: Ints, axis: str, inches: float) -> None:
    """Write numbers of parties below their columns 0..S-1, as many as fit.

    None where the columns are in another order and too many.
    """
    widest = measure_text(str(int(ids.max())), smallest_font() + 1)
    room = int(inches / (1.5 * widest))
    shown: list[int] = []
    if axis == "party" or len(ids) <= room:
        shown = list(choose_labelled(len(ids), room))
    ax.set_xticks(shown, [str(ids[i]) for i in shown])
    ax.set_xlabel(axis)
