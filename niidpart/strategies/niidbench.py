"""Replay: NIID-Bench's published partition function, bit for bit."""

from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.deal import repeat_evenly
from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError
from ..registry import Above, AtLeast
from . import Owners
from ._replays import LARGEST_SEED, limit_tries, list_rows, require_own_options, store_tries

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
Legacy = np.random.RandomState  # its stream is frozen


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
) -> Owners:
    """Replay of NIID-Bench's code: the same rows as its partition function after
    np.random.seed(seed) and random.seed(seed). ICDE 2022.

    rule: dir (its noniid-labeldir), labels (noniid-#label<k>), quantity (iid-diff-quantity), homo.
    FedLab, FedML, OpenFL and PFLlib took the function over, and give the same split for dir. It
    draws from numpy's legacy generator, whose stream is frozen, so `rng` is not used; the
    Dirichlet draws of `dir` and `quantity` also go through the platform's log and pow, so that
    these two are promised on one C library only.

    Returns
    -------
    Owners
        Draws: tries [1], of `dir` and `quantity`; held [P, K], of `labels`.

    Raises
    ------
    UsageError
        Where the published function would stop or never end, and for an option of another rule.
    """
    if seed > LARGEST_SEED:
        raise UsageError(f"seed is {seed}; the published function takes 0..{LARGEST_SEED}")
    require_own_options(RULES, rule, {"beta": beta, "k": k}, niidbench.__kwdefaults__)
    random = Legacy(seed)
    if rule == "homo":
        order = random.permutation(len(labels))
        owner = np.empty(len(labels), np.int64)
        owner[order] = repeat_evenly(np.arange(n_parties), len(labels))
        return Owners(owner, {})
    if rule == "labels":
        return _deal_classes(labels, n_parties, k, random, seed)
    if n_parties * MIN_SIZE > len(labels):
        raise UsageError(
            f"the published function redraws until each party has {MIN_SIZE} examples, and "
            f"{n_parties} parties cannot have so many of {len(labels)}; use at most "
            f"{len(labels) // MIN_SIZE} parties"
        )
    if rule == "dir":
        return _deal_by_class(labels, n_parties, beta, random)
    return _deal_quantities(labels, n_parties, beta, random)


def _deal_by_class(labels: Ints, n_parties: int, beta: float, random: Legacy) -> Owners:
    """Return the split of its noniid-labeldir, redrawn until everybody has enough."""
    n = len(labels)
    classes = list_rows(labels)
    for tries in range(1, limit_tries(n) + 1):
        owner = np.empty(n, np.int64)
        sizes = np.zeros(n_parties, np.int64)
        for of_class in classes:
            rows = of_class.copy()
            random.shuffle(rows)
            # The balance step: who holds a fair share gets nothing of this class.
            has_room = sizes < n / n_parties
            p = random.dirichlet(np.repeat(beta, n_parties)) * has_room
            counts = _cut_counts(p, len(rows))
            owner[rows] = np.repeat(np.arange(n_parties), counts)
            sizes += counts
        if sizes.min() >= MIN_SIZE:
            return Owners(owner, store_tries(tries))
    raise _refuse_endless(n, n_parties, beta, "dir")


def _deal_quantities(labels: Ints, n_parties: int, beta: float, random: Legacy) -> Owners:
    """Return the split of its iid-diff-quantity, redrawn until everybody has enough."""
    n = len(labels)
    rows = random.permutation(n)
    for tries in range(1, limit_tries(n_parties) + 1):
        p = random.dirichlet(np.repeat(beta, n_parties))
        with np.errstate(invalid="ignore"):
            p = p / p.sum()
        if not np.min(p * n) < MIN_SIZE:  # NaN ends it too
            counts = _cut_counts(p, n)
            return Owners(_cut(rows, counts), store_tries(tries))
    raise _refuse_endless(n, n_parties, beta, "quantity")


def _deal_classes(
    labels: Ints,
    n_parties: int,
    k: int,
    random: Legacy,
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
            random.shuffle(rows)
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
    numbers = _python_integers(n_classes, seed)
    # One party after another: what one draws twice moves all that follow.
    for party in range(n_parties):
        held[party, party % n_classes] = 1
        missing = k - 1
        while missing:
            label = next(numbers)
            missing -= int(held[party, label] == 0)
            held[party, label] = 1
    return held


def _python_integers(bound: int, seed: int) -> Iterator[int]:
    """Yield what `random.randint(0, bound - 1)` gives after `random.seed(seed)`.

    Python takes the high bits of 32-bit words and passes over those that are too large. numpy's
    legacy generator seeded with a list gives the words that python's gives when seeded with the
    number.
    """
    words = Legacy([seed])
    unused_bits = np.uint32(32 - bound.bit_length())
    while True:
        bits = np.frombuffer(words.bytes(4 << 12), "<u4") >> unused_bits
        yield from bits[bits < bound].tolist()


def _cut_counts(p: Floats, n: int) -> Ints:
    """Return [P] how many of n rows each party gets: cut at floor(cumsum(p) * n).

    The last party takes the rest, and all where p is 0 or NaN throughout.
    """
    with np.errstate(invalid="ignore"):
        shares = np.cumsum(p / p.sum()) * n
    shares = np.where(np.isnan(shares), 0.0, shares)
    cuts = shares[:-1].astype(np.int64)
    return np.diff(np.concatenate([[0], cuts, [n]]))


def _cut(rows: Ints, counts: Ints) -> Ints:
    """Return [N] the party of each row, where the first `counts[0]` of `rows` go to party 0, ..."""
    owner = np.empty(len(rows), np.int64)
    owner[rows] = np.repeat(np.arange(len(counts)), counts)
    return owner


def _refuse_endless(n: int, n_parties: int, beta: float, rule: str) -> UsageError:
    tries = limit_tries(n if rule == "dir" else n_parties)
    return UsageError(
        f"in {tries} tries no draw of beta {beta} gave each of {n_parties} parties {MIN_SIZE} of "
        f"{n} examples, and the published function would go on drawing; the strategy {rule} draws "
        "once and moves rows instead"
    )
