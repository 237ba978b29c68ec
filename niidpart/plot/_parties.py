"""Which parties a picture shows, and in which order."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..errors import UsageError
from ..splits.split import FederatedSplit
from ._look import choose_labelled, measure_text, smallest_font

Order = Literal["auto", "party", "size", "class"]
_BY = {
    "party": "party",
    "size": "parties, largest first",
    "class": "parties, by their most frequent class",
}


def parse_parties(
    parties: str | Sequence[int] | NDArray[Any] | None, n_parties: int
) -> Ints | None:
    """[S] int64 of `0,3,7-9` or of numbers; None for None. ValueError where there is no such party, or one stands twice."""
    if parties is None:
        return None
    try:
        ids = np.array(
            [p for piece in parties.split(",") for p in _piece(piece)]
            if isinstance(parties, str)
            else parties
        )
        if ids.ndim != 1 or not len(ids) or ids.dtype.kind not in "iu":
            raise ValueError
    except ValueError:
        raise UsageError(
            f"parties are {parties!r}; numbers of parties are needed, such as 0,3,7-9"
        ) from None
    if len(strange := ids[(ids < 0) | (ids >= n_parties)]):
        raise UsageError(f"there is no party {strange[0]}; the parties are 0..{n_parties - 1}")
    if len(np.unique(ids)) < len(ids):
        raise UsageError(f"parties are {parties!r}; one of them stands twice")
    return ids.astype(np.int64)


def _piece(text: str) -> range:
    first, dash, last = text.strip().partition("-")
    span = range(int(first), int(last if dash else first) + 1)
    if not 0 < len(span) <= 1 << 20:
        raise ValueError
    return span


def choose_parties(
    split: FederatedSplit, parties: Ints | None, limit: int, by: str = "size"
) -> tuple[Ints, str]:
    """(ids [S], what they are in words): those asked for; else all, or where they are more than `limit`, some evenly by size or number."""
    n = split.n_parties
    if parties is not None:
        return parties, f"{len(parties):,} of {n:,} parties, as asked" if len(parties) < n else ""
    if n <= limit:
        return np.arange(n), ""
    ranked = np.argsort(split.train.sizes, kind="stable") if by == "size" else np.arange(n)
    ids = np.sort(ranked[np.linspace(0, n - 1, limit).round().astype(np.int64)])
    return ids, f"{limit:,} of {n:,} parties, evenly by {by}"


def order_parties(
    split: FederatedSplit, ids: Ints, order: Order, labelled: int
) -> tuple[Ints, str]:
    """(ids [S] in order, the label of their axis). auto: as they are while each has room for its number, else by their most frequent class."""
    how = order if order != "auto" else "party" if len(ids) <= labelled else "class"
    counts = split.train.counts[ids]
    if how == "size":
        ids = ids[np.argsort(-split.train.sizes[ids], kind="stable")]
    if how == "class":
        share = counts.max(1) / np.maximum(counts.sum(1), 1)
        ids = ids[np.lexsort((-share, counts.argmax(1)))]
    return ids, _BY[how]


def label_parties(ax: Any, ids: Ints, axis: str, inches: float) -> None:
    """Numbers of parties below their columns 0..S-1, as many as fit; none where the columns are in another order and too many."""
    room = int(inches / (1.5 * measure_text(str(int(ids.max())), smallest_font() + 1)))
    fits = axis == "party" or len(ids) <= room
    shown = list(choose_labelled(len(ids), room)) if fits else []
    ax.set_xticks(shown, [str(ids[i]) for i in shown])
    ax.set_xlabel(axis)
