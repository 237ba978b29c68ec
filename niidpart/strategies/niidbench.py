"""Replay: NIID-Bench's published partition function, bit for bit."""

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.deal import repeat_evenly, split_evenly
from ..arithmetic.numpy_draws.legacy import LegacyDraws
from ..arithmetic.numpy_draws.pythons import PythonDraws
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError
from ..registry import Above, AtLeast
from . import Deal, Owners
from ._balanced_cuts import cut_balanced
from ._replays import (
    LARGEST_SEED,
    cut_counts,
    cut_in_order,
    limit_tries,
    list_rows,
    normalise,
    refuse_endless,
    require_own_options,
    store_tries,
)

__all__ = ["niidbench"]

PAPER = "li2022silos"
READING = {  # by rule
    "dir": "rough-proportions",  # cut at whole examples
    "homo": "sample",
    "labels": "proportions",
    "quantity": "sample",
}
SKEWED_BY = {"dir": "beta", "labels": "k", "quantity": "beta"}  # by rule

RULES = {  # the options that each rule takes
    "dir": ("beta",),
    "homo": (),
    "labels": ("k",),
    "quantity": ("beta",),
}

MIN_SIZE = 10  # of its `dir` and `quantity`


def niidbench(
    labels: Ints,
    n_parties: int,
    rng: Stream,
    *,
    seed: int,
    rule: Annotated[
        Literal["dir", "homo", "labels", "quantity"], "Which of its partitions."
    ] = "dir",
    beta: Annotated[
        float, "Concentration of the Dirichlet draw of the rules dir and quantity.", Above(0)
    ] = 0.5,
    k: Annotated[
        int, "Classes that each party holds by the rule labels; all at most.", AtLeast(1)
    ] = 2,
) -> Owners | Deal:
    """Replay of NIID-Bench's code: the same rows as its partition function after
    np.random.seed(seed) and random.seed(seed). ICDE 2022.

    rule: dir (its noniid-labeldir), labels (noniid-#label<k>), quantity (iid-diff-quantity), homo.
    FedLab, FedML, OpenFL and PFLlib took the function over, and give the same split for dir. It
    draws from numpy's legacy generator, whose stream is frozen, so `rng` is not used; the
    Dirichlet draws of `dir` and `quantity` also go through the platform's log and pow, so that
    these two are promised on one C library only.

    Returns
    -------
    Owners or Deal
        Draws: tries [1], of `dir` and `quantity`; held [P, K], of `labels`.

    Raises
    ------
    UsageError
        Where the published function would stop or never end, and for an option of another rule.
    """
    if seed > LARGEST_SEED:
        raise UsageError(f"seed is {seed}; the published function takes 0..{LARGEST_SEED}")
    require_own_options(RULES, rule, {"beta": beta, "k": k}, niidbench)
    draws = LegacyDraws(seed)
    if rule == "homo":
        order = draws.permutation(len(labels))
        return cut_in_order(order, split_evenly(len(labels), n_parties))
    if rule == "labels":
        return _deal_classes(labels, n_parties, k, draws, seed)
    if n_parties * MIN_SIZE > len(labels):
        raise UsageError(
            f"the published function redraws until each party has {MIN_SIZE} examples, and "
            f"{n_parties} parties cannot have so many of {len(labels)}; use at most "
            f"{len(labels) // MIN_SIZE} parties"
        )
    if rule == "dir":
        return cut_balanced(draws, labels, n_parties, beta, MIN_SIZE, "dir")
    return _deal_quantities(labels, n_parties, beta, draws)


def _deal_quantities(labels: Ints, n_parties: int, beta: float, draws: LegacyDraws) -> Deal:
    """Return the split of its iid-diff-quantity, redrawn until everybody has enough."""
    n = len(labels)
    rows = draws.permutation(n)
    n_tries = limit_tries(n_parties)
    for tries in range(1, n_tries + 1):
        proportions = normalise(draws.dirichlet(beta, n_parties))
        if not np.min(proportions * n) < MIN_SIZE:  # NaN ends it too
            dealt = cut_in_order(rows, cut_counts(proportions, n))
            return dealt._replace(draws=store_tries(tries))
    asked = f"each of {n_parties} parties {MIN_SIZE} of {n} examples"
    raise refuse_endless(n_tries, f"beta {beta}", asked, "quantity")


def _deal_classes(
    labels: Ints,
    n_parties: int,
    k: int,
    draws: LegacyDraws,
    seed: int,
) -> Owners:
    """Return the split of its noniid-#label<k>."""
    n_classes = int(labels.max()) + 1
    if n_classes == 2 and k > 1:
        raise UsageError(f"k is {k}; on data of two classes the published function takes k = 1")
    if k > n_classes:
        raise UsageError(f"k is {k}; a party can hold 1 to {n_classes} classes of this data")
    held = _hold_classes(n_parties, n_classes, k, seed)
    owner = np.full(len(labels), -1, np.int64)
    for rows, is_holder in zip(list_rows(labels), held.T, strict=True):
        holders = np.flatnonzero(is_holder)
        if len(holders):
            draws.shuffle(rows)
            owner[rows] = repeat_evenly(holders, len(rows))
    return Owners(owner, {"held": held})


def _hold_classes(n_parties: int, n_classes: int, k: int, seed: int) -> NDArray[np.uint8]:
    """Return [P, K] which classes each party holds; UsageError where nobody draws a class."""
    if k == 10:  # a case of its own in the published function: no classes are drawn
        held = np.zeros((n_parties, n_classes), np.uint8)
        held[:, :10] = 1
        return held
    held = _draw_classes(n_parties, n_classes, k, seed)
    unheld = np.flatnonzero(~held.any(axis=0))
    if unheld.size:
        raise UsageError(
            f"no party drew class {unheld[0]}, and there the published function stops; use at "
            f"least {n_classes} parties, or the strategy labels"
        )
    return held


def _draw_classes(n_parties: int, n_classes: int, k: int, seed: int) -> NDArray[np.uint8]:
    """Return [P, K]: class i mod K, and k-1 others by python's `random.randint`."""
    held = np.zeros((n_parties, n_classes), np.uint8)
    draws = PythonDraws(seed)
    # One party after another: what one draws twice moves all that follow.
    for party in range(n_parties):
        held[party, party % n_classes] = 1
        missing = k - 1
        while missing:
            label = draws.below(n_classes)
            missing -= int(held[party, label] == 0)
            held[party, label] = 1
    return held
