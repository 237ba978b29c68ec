"""Replay: how the code of Cha and Chang (paper 004) deals pooled data, row by row, in two parts."""

from typing import Annotated, Literal

from ..arithmetic.numpy_draws.legacy import LegacyDraws
from ..arithmetic.rng import Ints, Stream
from ..registry import Above, AtLeast, Below
from . import Rows
from ._pooled_parts import cut_classes, hold_out
from ._replays import join_rows, require_legacy_seed

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
    parties, stored = cut_classes(draws, labels, n_parties, beta, redraw_below, balanced=True)
    return join_rows(hold_out(draws, parties, test_ratio), stored)
