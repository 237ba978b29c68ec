"""Replay: how the code of Cha and Chang (paper 004) deals pooled data, row by row, in two parts."""

from typing import Annotated, Literal

import numpy as np

from ..arithmetic.numpy_draws.legacy import LegacyDraws
from ..arithmetic.rng import Ints, Stream
from ..registry import Above, AtLeast, Below
from . import Arrays, Rows
from ._pooled_parts import hand_out, hold_out
from ._replays import (
    PartyRows,
    cut_counts,
    join_rows,
    limit_tries,
    list_rows,
    normalise,
    refuse_endless,
    require_legacy_seed,
    store_tries,
)

__all__ = ["map004"]

PAPER = "cha2025quantity"
READING = {"dir-balanced": "rough-proportions"}  # by rule: cut at whole examples
SKEWED_BY = {"dir-balanced": "beta"}  # by rule
RULES = {"dir-balanced": ("beta", "redraw_below", "test_ratio")}  # options that each rule takes


def map004(
    labels: Ints,
    n_parties: int,
    rng: Stream,
    *,
    seed: int,
    rule: Annotated[Literal["dir-balanced"], "Which of its schemes."] = "dir-balanced",
    version: Annotated[Literal["5b0a143"], "Which commit of nrs018/Non-IID_FL."] = "5b0a143",
    beta: Annotated[float, "Concentration of the Dirichlet draw (--alpha there).", Above(0)] = 0.5,
    redraw_below: Annotated[
        int, "Drawn again until each party has so many (--least_samples there).", AtLeast(0)
    ] = 40,
    test_ratio: Annotated[
        float, "Share of a party's examples for its test part.", AtLeast(0), Below(1)
    ] = 0.25,
) -> Rows:
    """Replay of the code of paper 004: the rows of its generate_data.py with that seed (42 there),
    a quarter of each party's for its test part. Cha and Chang, Information 2025.

    rule: dir-balanced (--alpha). It is a fork of FL-bench, with NIID-Bench's balance step and 40
    examples a party at least; the paper's severities are beta 1000, 0.5 and 0.01. It puts a data
    set's training and test rows together first: say --pool. What it draws is drawn again here, so
    `rng` is not used.

    Returns
    -------
    Rows
        Parts train and test. Draws: tries [1].

    Raises
    ------
    UsageError
        Where the published code never ends.
    """
    require_legacy_seed(seed)
    draws = LegacyDraws(seed)
    parties, stored = _cut_balanced(draws, labels, n_parties, beta, redraw_below)
    return join_rows(hold_out(draws, parties, test_ratio), stored)


def _cut_balanced(
    draws: LegacyDraws, labels: Ints, n_parties: int, beta: float, least: int
) -> tuple[PartyRows, Arrays]:
    """Return the split of --alpha. What one try has shuffled the next one shuffles on."""
    n = len(labels)
    class_rows = list_rows(labels)
    n_tries = limit_tries(n)
    for tries in range(1, n_tries + 1):
        sizes = np.zeros(n_parties, np.int64)
        all_counts = []
        for rows in class_rows:
            draws.shuffle(rows)
            has_room = sizes < n / n_parties
            proportions = normalise(draws.dirichlet(beta, n_parties) * has_room)
            counts = cut_counts(proportions, len(rows))
            all_counts.append(counts)
            sizes += counts
        if sizes.min() >= least:
            ordered = [rows.tolist() for rows in class_rows]
            return hand_out(ordered, np.array(all_counts)), store_tries(tries)
    asked = f"each of {n_parties} parties {least} of {n} examples"
    raise refuse_endless(n_tries, f"beta {beta}", asked, "dir-balanced")
