"""Replay: the split of FedDyn's published code, row by row."""

from typing import Annotated, Literal

import numpy as np

from ..arithmetic.numpy_draws.legacy import LegacyDraws
from ..arithmetic.rng import Ints, Stream
from ..registry import Above, AtLeast, AtMost
from . import Deal, Owners
from ._one_by_one import deal_one_by_one, draw_lognormal_sizes, draw_mixtures, pick_rows
from ._replays import cut_in_order, list_rows, require_legacy_seed, require_own_options

__all__ = ["feddyn"]

PAPER = "acar2021dynamic"
READING = {"homo": "sample", "party-dir": "sample"}  # by rule
SKEWED_BY = {"party-dir": "beta"}  # by rule
RULES = {"homo": ("sigma",), "party-dir": ("beta", "sigma")}  # the options that each rule takes


def feddyn(
    labels: Ints,
    n_parties: int,
    rng: Stream,
    *,
    seed: int,
    rule: Annotated[Literal["homo", "party-dir"], "Which of its rules."] = "party-dir",
    version: Annotated[Literal["48a19fa"], "Which commit of alpemreacar/FedDyn."] = "48a19fa",
    beta: Annotated[
        float, "Concentration of a party's Dirichlet draw (rule_arg there).", Above(0)
    ] = 0.3,
    sigma: Annotated[
        float,
        "Of the log-normal sizes (unbalanced_sgm there); 0 for equal ones.",
        AtLeast(0),
        AtMost(10),
    ] = 0.0,
) -> Owners | Deal:
    """Replay of FedDyn's code: the rows of its DatasetObject after np.random.seed(seed). Acar et
    al., ICLR 2021.

    rule: party-dir (its Dirichlet), homo (its iid; not the one of CIFAR-100, which deals each class
    evenly). What it draws is drawn again here, so `rng` is not used.

    Returns
    -------
    Owners or Deal

    Raises
    ------
    UsageError
        Where a party's classes are used up, and the published code would draw for ever.
    """
    given = {"beta": beta, "sigma": sigma}
    require_own_options(RULES, rule, given, feddyn)
    require_legacy_seed(seed)
    n, draws = len(labels), LegacyDraws(seed)
    order = draws.permutation(n)
    sizes = np.full(n_parties, n // n_parties)
    if sigma:
        sizes = draw_lognormal_sizes(draws, n, n_parties, sigma)
    if rule == "homo":
        return cut_in_order(order, sizes)
    shuffled = labels[order]
    class_rows = list_rows(shuffled)
    mixtures = draw_mixtures(draws, beta, n_parties, len(class_rows))
    party, dealt_labels, places = deal_one_by_one(
        draws, sizes, mixtures, np.bincount(shuffled), refills=False
    )
    owner = np.full(n, -1, np.int64)
    owner[order[pick_rows(class_rows, dealt_labels, places)]] = party
    return Owners(owner, {})
