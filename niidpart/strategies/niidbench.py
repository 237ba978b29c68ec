"""Replay: NIID-Bench's published partition function, bit for bit."""

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.deal import split_evenly
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError
from . import Arrays, Owners

__all__ = ["niidbench"]

MIN_SIZE = 10  # of its `dir` and `quantity`
Generator = np.random.RandomState


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
        float, "Concentration of the Dirichlet draw of the rules dir and quantity, above 0."
    ] = 0.5,
    k: Annotated[int, "Classes that each party holds by the rule labels, from 1 to all."] = 2,
) -> Owners:
    """Replay of NIID-Bench's code: the same rows as its partition function after np.random.seed(seed) and random.seed(seed). ICDE 2022.

    rule: dir (its noniid-labeldir), labels (noniid-#label<k>), quantity (iid-diff-quantity), homo. FedLab, FedML, OpenFL
    and PFLlib took the function over, and give the same split for dir. It draws from numpy's legacy generator, whose stream is frozen; the
    Dirichlet draws of `dir` and `quantity` also go through the platform's log and pow, so that these two are promised on one C library
    only. ValueError where the published function would never end. Draws: tries [1], `dir` and `quantity`; held [P, K], `labels`.
    """
    if seed >= 1 << 32:
        raise UsageError(f"seed is {seed}; the published function takes 0..{(1 << 32) - 1}")
    if rule not in ("dir", "quantity") and beta != 0.5:
        raise UsageError(f"beta belongs to the rules dir and quantity, the rule is {rule}")
    if rule != "labels" and k != 2:
        raise UsageError(f"k belongs to the rule labels, the rule is {rule}")
    random = Generator(seed)
    if rule == "homo":
        return Owners(
            _cut(random.permutation(len(labels)), split_evenly(len(labels), n_parties)), {}
        )
    if rule == "labels":
        return _labels(labels, n_parties, k, random, seed)
    if not beta > 0:
        raise UsageError(f"beta is {beta}; the Dirichlet concentration must be above 0")
    if n_parties * MIN_SIZE > len(labels):
        raise UsageError(
            f"the published function redraws until each party has {MIN_SIZE} examples, and {n_parties} parties cannot have so many of "
            f"{len(labels)}; use at most {len(labels) // MIN_SIZE} parties"
        )
    return (_dir if rule == "dir" else _quantity)(labels, n_parties, beta, random)


def _dir(labels: Ints, n_parties: int, beta: float, random: Generator) -> Owners:
    n = len(labels)
    classes = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])
    for tries in range(1, _limit(n) + 1):
        owner, sizes = np.empty(n, np.int64), np.zeros(n_parties, np.int64)
        for of_class in classes:
            rows = of_class.copy()
            random.shuffle(rows)
            p = random.dirichlet(np.repeat(beta, n_parties)) * (sizes < n / n_parties)
            counts = _counts(p, len(rows))
            owner[rows] = np.repeat(np.arange(n_parties), counts)
            sizes += counts
        if sizes.min() >= MIN_SIZE:
            return Owners(owner, _tries(tries))
    raise _endless(n, n_parties, beta, "dir")


def _quantity(labels: Ints, n_parties: int, beta: float, random: Generator) -> Owners:
    n = len(labels)
    rows = random.permutation(n)
    for tries in range(1, _limit(n_parties) + 1):
        p = random.dirichlet(np.repeat(beta, n_parties))
        with np.errstate(invalid="ignore"):
            p = p / p.sum()
        if not np.min(p * n) < MIN_SIZE:  # NaN ends it too
            return Owners(_cut(rows, _counts(p, n)), _tries(tries))
    raise _endless(n, n_parties, beta, "quantity")


def _labels(labels: Ints, n_parties: int, k: int, random: Generator, seed: int) -> Owners:
    n_classes = int(labels.max()) + 1
    if n_classes == 2 and k > 1:
        raise UsageError(f"k is {k}; on data of two classes the published function takes k = 1")
    if not 1 <= k <= n_classes:
        raise UsageError(f"k is {k}; a party can hold 1 to {n_classes} classes of this data")
    if (
        k == 10
    ):  # a case of its own in the published function: the first ten classes to everybody, without a draw of classes
        held = np.zeros((n_parties, n_classes), np.uint8)
        held[:, :10] = 1
    else:
        held = _held(n_parties, n_classes, k, seed)
        if unheld := np.flatnonzero(held.sum(axis=0) == 0).tolist():
            raise UsageError(
                f"no party drew class {unheld[0]}, and there the published function stops; use at least {n_classes} parties, or the strategy labels"
            )
    owner = np.full(len(labels), -1, np.int64)
    for rows, holds in zip(
        np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1]),
        held.T,
        strict=True,
    ):
        parties = np.flatnonzero(holds)
        if len(parties):
            random.shuffle(rows)
            owner[rows] = np.repeat(parties, split_evenly(len(rows), len(parties)))
    return Owners(owner, {"held": held})


def _held(n_parties: int, n_classes: int, k: int, seed: int) -> NDArray[np.uint8]:
    """[P, K]: class i mod K, and k-1 others by python's `random.randint`: the high bits of 32-bit words, those that are too large passed over.

    numpy's legacy generator seeded with a list gives the words that python's gives when seeded with the number.
    """
    words = Generator([seed])
    pending: list[int] = []
    held = np.zeros((n_parties, n_classes), np.uint8)
    for party in range(
        n_parties
    ):  # one party after another: what one draws twice moves all that follow
        held[party, party % n_classes] = 1
        missing = k - 1
        while missing:
            if not pending:
                bits = np.frombuffer(words.bytes(4 << 12), "<u4") >> np.uint32(
                    32 - n_classes.bit_length()
                )
                pending = bits[bits < n_classes][::-1].tolist()
            label = pending.pop()
            missing -= int(held[party, label] == 0)
            held[party, label] = 1
    return held


def _counts(p: NDArray[np.float64], n: int) -> Ints:
    """[P] how many of n rows each party gets: cut at floor(cumsum(p) * n), the last party takes the rest, and all where p is 0 or NaN throughout."""
    with np.errstate(invalid="ignore"):
        shares = np.cumsum(p / p.sum()) * n
    cuts = np.where(np.isnan(shares), 0.0, shares)[:-1].astype(np.int64)
    return np.diff(np.concatenate([[0], cuts, [n]]))


def _cut(rows: Ints, counts: Ints) -> Ints:
    owner = np.empty(len(rows), np.int64)
    owner[rows] = np.repeat(np.arange(len(counts)), counts)
    return owner


def _tries(tries: int) -> Arrays:
    return {"tries": np.array([tries], np.int64)}


def _limit(work: int) -> int:
    """How many tries: what takes some ten seconds, but 100 at least and 10,000 at most."""
    return max(100, min(10_000, 5 * 10**8 // work))


def _endless(n: int, n_parties: int, beta: float, rule: str) -> ValueError:
    tries = _limit(n if rule == "dir" else n_parties)
    return UsageError(
        f"in {tries} tries no draw of beta {beta} gave each of {n_parties} parties {MIN_SIZE} of {n} examples, and the published function would "
        f"go on drawing; the strategy {rule} draws once and moves rows instead"
    )
