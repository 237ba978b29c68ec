"""Replay: FedLab's partition functions, row by row."""

from typing import Annotated, Literal

import numpy as np

from ..arithmetic.deal import repeat_evenly
from ..arithmetic.numpy_draws.legacy import LegacyDraws
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError
from ..registry import Above, AtLeast, AtMost
from . import Deal, Owners
from ._balanced_cuts import cut_balanced
from ._held_classes import require_class_count
from ._one_by_one import deal_one_by_one, draw_lognormal_sizes, draw_mixtures, pick_rows
from ._replays import (
    cut_in_order,
    limit_tries,
    list_rows,
    normalise,
    refuse_endless,
    require_legacy_seed,
    require_own_options,
    sort_by_class,
)

__all__ = ["fedlab"]

PAPER = "zeng2023fedlab"
READING = {  # by rule
    "dir": "rough-proportions",  # cut at whole examples
    "homo": "sample",
    "labels": "proportions",
    "lognormal": "sample",
    "party-dir": "sample",  # of the whole data set: its classes are those of other rows
    "quantity": "sample",
    "shards": "proportions",
}
SKEWED_BY = {
    "dir": "beta",
    "labels": "k",
    "lognormal": "sigma",
    "party-dir": "beta",
    "quantity": "beta",
    "shards": "shards",
}  # by rule
FedLabRule = Annotated[
    Literal["dir", "homo", "labels", "lognormal", "party-dir", "quantity", "shards"],
    "Which of its partitions.",
]
UnequalSigma = Annotated[
    float,
    "Of the log-normal sizes (unbalance_sgm there), by the rule lognormal.",
    Above(0),
    AtMost(10),
]
RULES = {  # the options that each rule takes
    "dir": ("beta", "redraw_below"),
    "homo": (),
    "labels": ("k",),
    "lognormal": ("sigma",),
    "party-dir": ("beta",),
    "quantity": ("beta",),
    "shards": ("shards",),
}
_LEAST = 10  # of its quantity


def fedlab(
    labels: Ints,
    n_parties: int,
    rng: Stream,
    *,
    seed: int,
    rule: FedLabRule = "dir",
    version: Annotated[Literal["1.3.0"], "Of which release."] = "1.3.0",
    beta: Annotated[
        float, "Concentration of the Dirichlet draw (dir_alpha there).", Above(0)
    ] = 0.5,
    k: Annotated[int, "Classes that each party holds by the rule labels.", AtLeast(1)] = 2,
    shards: Annotated[int, "Shards of each party by the rule shards.", AtLeast(1)] = 2,
    sigma: UnequalSigma = 0.3,
    redraw_below: Annotated[
        int,
        "Drawn again until each party has so many; 0: as many as there are classes.",
        AtLeast(0),
    ] = 0,
) -> Owners | Deal:
    """Replay of FedLab: the rows that its partitioners give with that seed. Zeng et al., JMLR 2023.

    rule: homo (iid, balanced), lognormal (iid, unbalanced), quantity (unbalance), dir
    (hetero_dir_partition), party-dir (client_inner_dirichlet_partition, balanced: it forgets its
    own shuffle, so that parties are IID), labels (noniid-#label), shards (shards_partition; the
    order of rows within a class, which there depends on the processor, is ascending). What these
    draw is drawn again here, so `rng` is not used.

    Returns
    -------
    Owners or Deal
        Draws: tries [1], of dir; held [P, K], of labels.

    Raises
    ------
    UsageError
        Where the published code stops or never ends, and for an option of another rule.
    """
    given = {"beta": beta, "k": k, "shards": shards, "sigma": sigma, "redraw_below": redraw_below}
    require_own_options(RULES, rule, given, fedlab)
    require_legacy_seed(seed)
    draws, n = LegacyDraws(seed), len(labels)
    match rule:
        case "dir":
            least = redraw_below or int(labels.max()) + 1
            return cut_balanced(draws, labels, n_parties, beta, least, "dir-balanced")
        case "party-dir":
            return _deal_by_party(draws, labels, n_parties, beta)
        case "labels":
            return _deal_classes(draws, labels, n_parties, k)
        case "shards":
            return _deal_shards(draws, labels, n_parties, shards)
        case "lognormal":
            sizes = draw_lognormal_sizes(draws, n, n_parties, sigma)
        case "quantity":
            sizes = _draw_sizes(draws, n, n_parties, beta)
        case _:
            sizes = np.full(n_parties, n // n_parties)
    return cut_in_order(draws.permutation(n), sizes)


def _deal_by_party(draws: LegacyDraws, labels: Ints, n_parties: int, beta: float) -> Owners:
    """Return the split of client_inner_dirichlet_partition: numbers of shuffled rows, as rows."""
    n = len(labels)
    shuffled = labels[draws.permutation(n)]
    class_rows = list_rows(shuffled)
    class_sizes = np.bincount(shuffled)
    mixtures = draw_mixtures(draws, beta, n_parties, len(class_rows))
    sizes = np.full(n_parties, n // n_parties)
    dealt = deal_one_by_one(draws, sizes, mixtures, class_sizes, refills=False)
    party, dealt_labels, places = dealt
    owner = np.full(n, -1, np.int64)
    owner[pick_rows(class_rows, dealt_labels, places)] = party
    return Owners(owner, {})


def _deal_classes(draws: LegacyDraws, labels: Ints, n_parties: int, k: int) -> Owners:
    """Return the split of label_skew_quantity_based_partition."""
    class_rows = list_rows(labels)
    n_classes = len(class_rows)
    require_class_count(k, n_classes)
    held = np.zeros((n_parties, n_classes), np.uint8)
    for party in range(n_parties):
        held[party, party % n_classes] = 1
        missing = k - 1
        while missing:
            label = draws.below(n_classes)
            missing -= int(held[party, label] == 0)
            held[party, label] = 1
    owner = np.full(len(labels), -1, np.int64)
    for label, rows in enumerate(class_rows):
        holders = np.flatnonzero(held[:, label])
        if not len(holders):
            raise UsageError(
                f"no party drew class {label}, and there the published code stops; use at least "
                f"{n_classes} parties, or the strategy labels"
            )
        draws.shuffle(rows)
        owner[rows] = repeat_evenly(holders, len(rows))
    return Owners(owner, {"held": held})


def _deal_shards(draws: LegacyDraws, labels: Ints, n_parties: int, shards: int) -> Owners:
    """Return the split of shards_partition; what its whole shards leave belongs to nobody."""
    n, n_shards = len(labels), n_parties * shards
    size = n // n_shards
    if not size:
        raise UsageError(
            f"{n_parties} parties x {shards} shards need {n_shards} examples, there are {n}; use "
            f"at most {n // shards} parties"
        )
    shard = draws.permutation(n_shards).reshape(n_parties, shards)
    holder = np.empty(n_shards, np.int64)
    holder[shard] = np.arange(n_parties)[:, np.newaxis]
    order = sort_by_class(labels)
    owner = np.full(n, -1, np.int64)
    owner[order[: n_shards * size]] = np.repeat(holder, size)
    return Owners(owner, {"shard": shard})


def _draw_sizes(draws: LegacyDraws, n: int, n_parties: int, beta: float) -> Ints:
    """Return the sizes of dirichlet_unbalance_split, redrawn until everybody has enough."""
    n_tries = limit_tries(n_parties)
    for _ in range(n_tries):
        wanted = normalise(draws.dirichlet(beta, n_parties)) * n
        if wanted.min() >= _LEAST:
            return wanted.astype(np.int64)
    asked = f"each of {n_parties} parties {_LEAST} of {n} examples"
    raise refuse_endless(n_tries, f"beta {beta}", asked, "quantity")
