"""Replay: the partitioners of flwr-datasets, row by row."""

from typing import Annotated, Any, Literal

import numpy as np

from ..arithmetic.deal import repeat_evenly
from ..arithmetic.numpy_draws.modern import ModernDraws
from ..arithmetic.rng import Ints, Stream
from ..registry import Above, AtLeast
from . import Owners
from ._flower_labels import Assignment, deal_classes, deal_shards
from ._flower_mixtures import deal_by_class, deal_by_party
from ._flower_sizes import deal_growing
from ._replays import require_own_options

__all__ = ["flower"]

PAPER = "beutel2020flower"
READING = {  # by rule
    "dir": "rough-proportions",  # cut at whole examples
    "dir-balanced": "rough-proportions",
    "exponential": None,  # rows as they come
    "homo": None,
    "labels": "proportions",
    "linear": None,
    "party-dir": "sample",
    "shards": "proportions",
    "square": None,
}
SKEWED_BY = {
    "dir": "beta",
    "dir-balanced": "beta",
    "labels": "k",
    "party-dir": "beta",
    "shards": "shards",
}  # by rule
FlowerRule = Annotated[
    Literal[
        "dir",
        "dir-balanced",
        "exponential",
        "homo",
        "labels",
        "linear",
        "party-dir",
        "shards",
        "square",
    ],
    "Which of its partitioners.",
]
RULES = {  # the options that each rule takes
    "dir": ("beta", "redraw_below"),
    "dir-balanced": ("beta", "redraw_below"),
    "exponential": (),
    "homo": (),
    "labels": ("k", "assignment"),
    "linear": (),
    "party-dir": ("beta",),
    "shards": ("shards", "keep_rest"),
    "square": (),
}


def flower(
    labels: Ints,
    n_parties: int,
    rng: Stream,
    *,
    seed: int,
    rule: FlowerRule = "dir",
    version: Annotated[Literal["0.6.1"], "Of which release."] = "0.6.1",
    beta: Annotated[float, "Concentration of the Dirichlet draw (alpha there).", Above(0)] = 0.5,
    k: Annotated[int, "Classes that each party holds by the rule labels.", AtLeast(1)] = 2,
    shards: Annotated[int, "Shards of each party by the rule shards.", AtLeast(1)] = 2,
    redraw_below: Annotated[
        int, "Drawn again, ten times at most, until each party has so many.", AtLeast(0)
    ] = 10,
    assignment: Annotated[
        Assignment, "How parties get their classes by the rule labels."
    ] = "random",
    keep_rest: Annotated[
        bool, "By the rule shards: examples beyond the last whole shard are a shard too."
    ] = False,
) -> Owners:
    """Replay of flwr-datasets: the rows that its partitioners give with that seed (theirs is 42).
    Beutel et al., 2020.

    rule: dir (DirichletPartitioner), dir-balanced (the same with self_balancing), party-dir
    (InnerDirichletPartitioner, N // P examples each), labels (PathologicalPartitioner), shards
    (ShardPartitioner), homo (IidPartitioner, which draws nothing: the first examples go to the
    first party), linear, square and exponential (sizes that grow with the party's number). What
    these draw is drawn again here, so `rng` is not used.

    Returns
    -------
    Owners
        Draws: tries [1], of dir and dir-balanced.

    Raises
    ------
    UsageError
        Where the published code stops, and for an option of another rule.
    """
    given: dict[str, Any] = {"beta": beta, "k": k, "shards": shards, "redraw_below": redraw_below}
    given |= {"assignment": assignment, "keep_rest": keep_rest}
    require_own_options(RULES, rule, given, flower)
    draws = ModernDraws(seed)
    n = len(labels)
    match rule:
        case "dir" | "dir-balanced":
            is_balanced = rule == "dir-balanced"
            return deal_by_class(draws, labels, n_parties, beta, redraw_below, is_balanced)
        case "party-dir":
            return deal_by_party(draws, labels, n_parties, beta)
        case "labels":
            return deal_classes(draws, labels, n_parties, k, assignment)
        case "shards":
            return deal_shards(draws, labels, n_parties, shards, keep_rest)
        case "homo":
            return Owners(repeat_evenly(np.arange(n_parties), n), {})
        case _:
            return deal_growing(n, n_parties, rule)
