"""Replay: FL-bench's generate_data.py, row by row, with its training and test parts."""

from typing import Annotated, Literal

import numpy as np

from ..arithmetic.numpy_draws.legacy import LegacyDraws
from ..arithmetic.numpy_draws.pythons import PythonDraws
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError
from ..registry import Above, AtLeast, Below
from . import Arrays, Rows
from ._held_classes import require_class_count
from ._pooled_parts import cut_classes, hold_out
from ._replays import (
    PartyRows,
    join_rows,
    list_rows,
    require_legacy_seed,
    require_own_options,
    sort_by_class,
)

__all__ = ["fl_bench"]

PAPER = "tan2023flbench"
READING = {  # by rule
    "dir": "rough-proportions",  # cut at whole examples
    "homo": "sample",
    "labels": "proportions",
    "shards": "proportions",
}
SKEWED_BY = {"dir": "beta", "labels": "k", "shards": "shards"}  # by rule
RULES = {  # the options that each rule takes
    "dir": ("beta", "redraw_below", "test_ratio"),
    "homo": ("test_ratio",),
    "labels": ("k", "test_ratio"),
    "shards": ("shards", "test_ratio"),
}


def fl_bench(
    labels: Ints,
    n_parties: int,
    rng: Stream,
    *,
    seed: int,
    rule: Annotated[Literal["dir", "homo", "labels", "shards"], "Which of its schemes."] = "dir",
    version: Annotated[Literal["06e658b"], "Which commit of KarhouTam/FL-bench."] = "06e658b",
    beta: Annotated[float, "Concentration of the Dirichlet draw (--alpha there).", Above(0)] = 0.1,
    k: Annotated[
        int, "Classes that each party holds by the rule labels (--classes there).", AtLeast(1)
    ] = 2,
    shards: Annotated[int, "Shards of each party by the rule shards.", AtLeast(1)] = 2,
    redraw_below: Annotated[
        int, "Drawn again until each party has so many, by the rule dir.", AtLeast(0)
    ] = 10,
    test_ratio: Annotated[
        float, "Share of a party's examples for its test part.", AtLeast(0), Below(1)
    ] = 0.25,
) -> Rows:
    """Replay of FL-bench: the rows of its generate_data.py with that seed (theirs is 42), a quarter
    of each party's for its test part. Tan and Wang, 2023.

    rule: dir (--alpha), homo (--iid 1), labels (--classes), shards (--shards; the order of rows
    within a class, which there depends on the processor, is ascending). It puts a data set's
    training and test rows together first: say --pool. What it draws is drawn again here, so `rng`
    is not used.

    Returns
    -------
    Rows
        Parts train and test. Draws: tries [1], of dir.

    Raises
    ------
    UsageError
        Where the published code stops or never ends, and for an option of another rule.
    """
    given = {"beta": beta, "k": k, "shards": shards}
    given |= {"redraw_below": redraw_below, "test_ratio": test_ratio}
    require_own_options(RULES, rule, given, fl_bench)
    require_legacy_seed(seed)
    draws, pythons = LegacyDraws(seed), PythonDraws(seed)
    stored: Arrays = {}
    match rule:
        case "dir":
            parties, stored = cut_classes(
                draws, labels, n_parties, beta, redraw_below, balanced=False
            )
        case "labels":
            parties = _sample_classes(pythons, labels, n_parties, k)
        case "shards":
            parties = _sample_shards(pythons, labels, n_parties, shards)
        case _:
            parties = _deal_evenly(pythons, len(labels), n_parties)
    return join_rows(hold_out(draws, parties, test_ratio), stored)


def _deal_evenly(pythons: PythonDraws, n: int, n_parties: int) -> PartyRows:
    """Return the split of --iid 1: all are sampled first, and then only their places count."""
    pythons.sample(list(range(n)), n)
    places = list(range(n))
    pythons.shuffle(places)
    size = n // n_parties
    return [places[party * size : (party + 1) * size] for party in range(n_parties)]


def _sample_classes(pythons: PythonDraws, labels: Ints, n_parties: int, k: int) -> PartyRows:
    """Return the split of --classes: as many of each class for each of its holders.

    The last holder takes what is left. What is left of a class goes through a set there, whose
    order python decides.
    """
    left = [rows.tolist() for rows in list_rows(labels)]
    n_classes = len(left)
    require_class_count(k, n_classes)
    held = [pythons.sample(list(range(n_classes)), k) for _ in range(n_parties)]
    n_holders = np.bincount(np.concatenate(held), minlength=n_classes)
    sizes = [len(rows) // max(int(n), 1) for rows, n in zip(left, n_holders, strict=True)]
    parties: PartyRows = [[] for _ in range(n_parties)]
    for party, of_party in zip(parties, held, strict=True):
        for label in of_party:
            is_last = len(left[label]) < 2 * sizes[label]
            size = len(left[label]) if is_last else sizes[label]
            chosen = pythons.sample(left[label], size)
            party += chosen
            left[label] = list(set(left[label]) - set(chosen))
    return parties


def _sample_shards(pythons: PythonDraws, labels: Ints, n_parties: int, shards: int) -> PartyRows:
    """Return the split of --shards; what its whole shards leave belongs to nobody."""
    n, n_shards = len(labels), n_parties * shards
    size = n // n_shards
    if not size:
        raise UsageError(
            f"{n_parties} parties x {shards} shards need {n_shards} examples, there are {n}; use "
            f"at most {n // shards} parties"
        )
    order = sort_by_class(labels).tolist()
    left = list(range(n_shards))
    parties: PartyRows = []
    for _ in range(n_parties):
        chosen = pythons.sample(left, shards)
        left = list(set(left) - set(chosen))
        parties.append([row for shard in chosen for row in order[shard * size :][:size]])
    return parties
