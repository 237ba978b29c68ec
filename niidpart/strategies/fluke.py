"""Replay: fluke's DataSplitter, row by row, with the parties' test parts where it makes them."""

from typing import Annotated, Any, Literal

import numpy as np

from ..arithmetic.numpy_draws.legacy import LegacyDraws
from ..arithmetic.rng import Ints, Stream
from ..registry import Above, AtLeast, Below
from . import Rows
from ._fluke_rules import (
    Dealt,
    LabelPools,
    deal_by_mixture,
    deal_by_power,
    deal_classes,
    deal_evenly,
    deal_shards,
)
from ._replays import join_once, join_parties, require_legacy_seed, require_own_options
from ._stratified import split_rows

__all__ = ["fluke"]

PAPER = "polato2026fluke"
READING = {  # by rule
    "dir": "sample",
    "homo": "sample",
    "labels": "sample",
    "quantity": "sample",
    "shards": "proportions",
}
SKEWED_BY = {  # by rule
    "dir": "beta",
    "labels": "k",
    "quantity": "exponent",
    "shards": "shards",
}
RULES = {  # the options that each rule takes
    "dir": ("beta", "min_each", "even", "test_ratio"),
    "homo": ("test_ratio",),
    "labels": ("k", "test_ratio"),
    "quantity": ("exponent", "min_each", "test_ratio"),
    "shards": ("shards", "test_ratio"),
}


def fluke(
    labels: Ints,
    n_parties: int,
    rng: Stream,
    *,
    seed: int,
    rule: Annotated[
        Literal["dir", "homo", "labels", "quantity", "shards"], "Which of its distributions."
    ] = "dir",
    version: Annotated[Literal["0.8.1"], "Of which release (fluke-fl on PyPI)."] = "0.8.1",
    beta: Annotated[float, "Concentration of the Dirichlet draw.", Above(0)] = 0.1,
    k: Annotated[int, "Classes that each party holds (class_per_client there).", AtLeast(1)] = 2,
    exponent: Annotated[
        float, "Of the power law of sizes (alpha there); 1 is even.", Above(0)
    ] = 4.0,
    shards: Annotated[int, "Shards of each party by the rule shards.", AtLeast(1)] = 2,
    min_each: Annotated[
        int,
        "Examples that each party has (min_quantity there); by the rule dir of each class "
        "(min_ex_class).",
        AtLeast(0),
    ] = 2,
    even: Annotated[
        bool,
        "By the rule dir: parties are cut or filled up to N // P (balanced there), which deals "
        "rows twice.",
    ] = False,
    test_ratio: Annotated[
        float, "Share of all examples for test parts (client_split there).", AtLeast(0), Below(1)
    ] = 0.0,
) -> Rows:
    """Replay of fluke: the rows that its DataSplitter assigns after np.random.seed(seed), which is
    42 in its configurations. Polato, Future Generation Computer Systems 2026.

    rule: homo (iid), quantity (qnt), labels (lbl_qnt), dir, shards (pathological; the order of rows
    within a class, which there depends on the processor, is ascending). Test parts are cut off all
    examples first, by class, as scikit-learn does it, and dealt by the same rule. Replayed with
    keep_test, server_test and without uniform_test, as its examples have it. What it draws is drawn
    again here, so `rng` is not used.

    Returns
    -------
    Rows
        Part train, and test where test_ratio is above 0. Draws: again [R, 2] (party, row), one line
        for each time that a party got a row once more, as happens with `even`.

    Raises
    ------
    UsageError
        Where the published code stops, and for an option of another rule.
    """
    given: dict[str, Any] = {"beta": beta, "k": k, "exponent": exponent, "shards": shards}
    given |= {"min_each": min_each, "even": even, "test_ratio": test_ratio}
    require_own_options(RULES, rule, given, fluke)
    require_legacy_seed(seed)
    draws = LegacyDraws(seed)
    pools = {"train": np.arange(len(labels))}
    if test_ratio:
        pools = dict(zip(("train", "test"), split_rows(draws, labels, test_ratio), strict=True))
    dealt = _deal(rule, draws, [labels[pool] for pool in pools.values()], n_parties, given)
    parts = {}
    for (name, pool), parties in zip(pools.items(), dealt, strict=True):
        party, place = join_parties(parties)
        parts[name] = (party, pool[place])
    if even:
        return join_once(parts)
    return Rows(parts, {"again": np.zeros((0, 2), np.int64)})  # no other rule gives a row twice


def _deal(
    rule: str, draws: LegacyDraws, pools: LabelPools, n_parties: int, given: dict[str, Any]
) -> Dealt:
    """Return what each party holds of each pool by the rule."""
    match rule:
        case "dir":
            beta, min_each, even = given["beta"], given["min_each"], given["even"]
            return deal_by_mixture(draws, pools, n_parties, beta, min_each, even)
        case "labels":
            return deal_classes(draws, pools, n_parties, given["k"])
        case "quantity":
            return deal_by_power(draws, pools, n_parties, given["exponent"], given["min_each"])
        case "shards":
            return deal_shards(draws, pools, n_parties, given["shards"])
        case _:
            return deal_evenly(draws, pools, n_parties)
