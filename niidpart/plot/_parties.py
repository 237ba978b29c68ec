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
    is_list = ids.ndim == 1 and len(ids) > 0 and ids.dtype.kind in "iu"
    return ids if is_list else None


def _read_range(text: str) -> NDArray[Any]:
    first, dash, last = text.strip().partition("-")
    span = range(int(first), int(last if dash else first) + 1)
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
        said = f"{len(parties):,} of {n:,} parties, as asked" if len(parties) < n else ""
        return parties, said
    if n <= limit:
        return np.arange(n), ""
    ranked = np.argsort(split.train.sizes, kind="stable") if by == "size" else np.arange(n)
    ids = np.sort(ranked[choose_evenly(n, limit)])
    return ids, f"{limit:,} of {n:,} parties, evenly by {by}"


def order_parties(
    split: FederatedSplit, ids: Ints, order: Order, labelled: int
) -> tuple[Ints, str]:
    """Return (ids [S] in order, the label of their axis).

    auto: by number while each has room for it, else by their most frequent class.
    """
    if order == "auto":
        order = "party" if len(ids) <= labelled else "class"
    if order == "size":
        ids = ids[np.argsort(-split.train.sizes[ids], kind="stable")]
    if order == "class":
        counts = split.train.counts[ids]
        share = counts.max(1) / np.maximum(counts.sum(1), 1)
        ids = ids[np.lexsort((-share, counts.argmax(1)))]
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
