"""How a split was dealt, as far as its skew depends on it: the recipe and the draws say it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..heterogeneity import Reading, Skew, measure
from ..strategies import STRATEGIES
from .recipe import Recipe
from .view import SplitView


def measure_skew(split: SplitView, reading: Reading | None = None) -> Skew:
    """Return how skewed the training part of a split is.

    Parameters
    ----------
    split : FederatedSplit or OpenedSplit
    reading : {"sample", "proportions", "rough-proportions"}, optional
        What the counts of a party are taken for: a sample of its proportions, or these themselves.
        Default: what the strategy of the recipe says; for an imported split, for groups that the
        data came in and for a strategy of your own nobody does, and `skew.reading` is None.

    Returns
    -------
    Skew

    Raises
    ------
    UsageError
        For another reading.

    Examples
    --------
    >>> import niidpart, numpy as np
    >>> split = niidpart.make(np.arange(600) % 4, "dir", n_parties=5, beta=0.5)
    >>> split.skew.reading
    'proportions'
    >>> niidpart.measure_skew(split, "sample").reading
    'sample'
    """
    if reading is None:
        reading = find_reading(split.recipe)
    return measure(split.train.counts, reading, list_moves(split))


def find_reading(recipe: Recipe) -> Reading | None:
    """Return what a recipe's strategy says that the counts of a party are.

    None where nobody knows. A strategy of a user's own is never run because a file names it, so it
    is not asked either.
    """
    if recipe.strategy not in STRATEGIES.names():
        return None
    declared: Reading | Mapping[Any, Reading] | None
    declared = STRATEGIES.module(recipe.strategy).READING
    if not isinstance(declared, Mapping):
        return declared
    # of the replay of a peer; in a damaged file it may be anything
    rule = recipe.params.get("rule")
    return declared.get(rule) if isinstance(rule, str) else None


def list_moves(split: SplitView) -> Ints | None:
    """Return [M, 2] from whom to whom each training example went that was moved to a small party.

    None where nothing was moved.
    """
    if split.recipe.strategy not in STRATEGIES.names() or "moved" not in split.draws:
        return None
    moved = split.draws["moved"]  # [M, 3] row, from, to
    if not len(moved) or not _is_list_of_moves(moved, split.n_parties):
        return None  # in a file of somebody else's, which `verify` refuses
    moves = moved[np.argsort(moved[:, 2], kind="stable"), 1:].astype(np.int64)
    # Each part of a party has its share of what it was given; which of it, the moves do not say.
    sizes = sum(part.sizes for part in split.parts.values())
    share = split.train.sizes / np.maximum(sizes, 1)
    n_received = np.bincount(moves[:, 1], minlength=split.n_parties)
    n_of_train = np.rint(n_received * share).astype(np.int64)
    first = np.cumsum(n_received) - n_received
    place = np.arange(len(moves)) - first[moves[:, 1]]  # among those of the same party
    return moves[place < n_of_train[moves[:, 1]]]


def _is_list_of_moves(moved: NDArray[Any], n_parties: int) -> bool:
    if moved.ndim != 2 or moved.shape[1] != 3 or moved.dtype.kind not in "iu":
        return False
    parties = moved[:, 1:]
    return bool((parties >= 0).all() and (parties < n_parties).all())
