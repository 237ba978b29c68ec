"""Whether the smallest party is larger than its rule makes it: a minimum was forced."""

from collections.abc import Iterator, Sequence

import numpy as np

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, stream
from ..wording import count_noun
from .explanation import Explanation
from .findings import Finding

_DRAWS = 2000
_LEAST_DRAWS = 1000  # fewer say nothing of one in a thousand
_CELLS = 4_000_000  # that are drawn in all
_BLOCK = 1 << 20  # cells that are drawn at once


def find_redraw(counts: Ints, explained: Sequence[Explanation]) -> Iterator[Finding]:
    """Yield that no draw of the best rule has so large a smallest party.

    Codes draw again and again until each party holds ten rows, or move rows: the law of the result
    is no longer that of the rule that is named.
    """
    smallest = int(counts.sum(axis=1, dtype=np.int64).min())
    n_draws = min(_DRAWS, _CELLS // counts.size)
    best = explained[0] if explained else None
    if best is None or best.value is None or not smallest or n_draws < _LEAST_DRAWS:
        return
    if best.rule not in ("dir", "dir-balanced"):
        return
    drawn = _draw_smallest(
        counts, best.value, n_draws=n_draws, is_balanced=best.rule == "dir-balanced"
    )
    if drawn.max() < smallest:
        yield Finding(
            "minimum-forced",
            "note",
            f"the smallest party holds {count_noun(smallest, 'row')}, and in none of {n_draws:,} "
            f"draws of {best.describe()} has the smallest so many (median "
            f"{np.median(drawn):.0f}): drawn again until it fitted, or rows were moved",
            smallest,
        )


def _draw_smallest(counts: Ints, beta: float, *, n_draws: int, is_balanced: bool) -> Floats:
    """Return [n_draws] the size of the smallest party in each draw of the rule."""
    P, K = counts.shape
    n_of_class = counts.sum(axis=0, dtype=np.int64)
    rng = stream(0, "audit", "redraw")
    step = max(1, _BLOCK // counts.size)
    found = []
    for start in range(0, n_draws, step):
        n_here = min(step, n_draws - start)
        shares = rng.dirichlet(beta, (n_here, K, P))
        held = np.zeros((n_here, P))
        for k in range(K):
            share = shares[:, k]
            if is_balanced:
                share = np.where(held * P < n_of_class.sum(), share, 0.0)
                share = share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
            held += share * n_of_class[k]
        found.append(held.min(axis=1))
    return np.concatenate(found)
