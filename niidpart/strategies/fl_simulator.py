"""Replay: the split of FL-Simulator's published code, with the examples that it deals twice."""

from typing import Annotated, Literal

import numpy as np

from ..arithmetic.exact import Floats
from ..arithmetic.numpy_draws.legacy import LegacyDraws
from ..arithmetic.rng import Ints, Stream
from ..registry import Above, AtLeast
from . import Rows
from ._held_classes import require_class_count
from ._one_by_one import deal_one_by_one, draw_mixtures, give_rest_to_first, pick_rows
from ._replays import join_once, list_rows, require_legacy_seed, require_own_options

__all__ = ["fl_simulator"]

PAPER = "sun2023fedspeed"
READING = {"homo": "sample", "labels": "sample", "party-dir": "sample"}  # by rule
SKEWED_BY = {"labels": "k", "party-dir": "beta"}  # by rule
RULES = {"homo": (), "labels": ("k",), "party-dir": ("beta",)}  # the options that each rule takes


def fl_simulator(
    labels: Ints,
    n_parties: int,
    rng: Stream,
    *,
    seed: int,
    rule: Annotated[Literal["homo", "labels", "party-dir"], "Which of its rules."] = "party-dir",
    version: Annotated[
        Literal["502bec6"], "Which commit of woodenchild95/FL-Simulator."
    ] = "502bec6",
    beta: Annotated[
        float, "Concentration of a party's Dirichlet draw (split_coef there).", Above(0)
    ] = 0.6,
    k: Annotated[int, "Classes that each party holds by the rule labels.", AtLeast(1)] = 2,
) -> Rows:
    """Replay of FL-Simulator's code: the rows of its DatasetObject with that seed (20 there). Sun
    et al., ICLR 2023.

    rule: party-dir (its Dirichlet), labels (its Pathological), homo (its iid; not the one of
    CIFAR-100, which deals each class evenly). A class that is used up begins anew there, so
    several parties hold an example, and others nobody. A row that one party got twice stands once
    in the split; the draw `again` says which. What it draws is drawn again here, so `rng` is not
    used.

    Returns
    -------
    Rows
        Draws: again [R, 2] (party, row), one line for each time that a party got a row once more.

    Raises
    ------
    UsageError
        For an option of another rule.
    """
    require_own_options(RULES, rule, {"beta": beta, "k": k}, fl_simulator)
    require_legacy_seed(seed)
    n, draws = len(labels), LegacyDraws(seed)
    order = draws.permutation(n)
    sizes = give_rest_to_first(np.full(n_parties, n // n_parties), n)
    if rule == "homo":
        party = np.repeat(np.arange(n_parties), sizes)
        return join_once({"train": (party, order)})
    shuffled = labels[order]
    class_rows = list_rows(shuffled)
    if rule == "labels":
        mixtures = _draw_classes(draws, n_parties, len(class_rows), k)
    else:
        mixtures = draw_mixtures(draws, beta, n_parties, len(class_rows))
    party, dealt_labels, places = deal_one_by_one(
        draws, sizes, mixtures, np.bincount(shuffled), refills=True
    )
    row = order[pick_rows(class_rows, dealt_labels, places)]
    return join_once({"train": (party, row)})


def _draw_classes(draws: LegacyDraws, n_parties: int, n_classes: int, k: int) -> Floats:
    """Return [P, K] 1 / k for the classes of each party, else 0."""
    require_class_count(k, n_classes)
    mixtures = np.zeros((n_parties, n_classes))
    for party in range(n_parties):
        held = np.repeat([1, 0], [k, n_classes - k])
        draws.shuffle(held)
        mixtures[party] = held / k
    return mixtures
