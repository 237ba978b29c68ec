"""Replay: pfl-research's partition by class distribution, row by row."""

from bisect import bisect_right
from typing import Annotated, Literal

import numpy as np

from ..arithmetic import exact
from ..arithmetic.exact import Floats
from ..arithmetic.numpy_draws.legacy import LegacyDraws
from ..arithmetic.rng import Ints, Stream
from ..registry import Above
from . import Owners
from ._replays import list_rows, require_legacy_seed

__all__ = ["pfl"]

PAPER = "granqvist2024pfl"
READING = {"party-dir": "sample"}  # by rule
SKEWED_BY = {"party-dir": "beta"}  # by rule
RULES = {"party-dir": ("beta",)}  # the options that each rule takes

_PATIENCE = 20  # draws an example of a party, after which its classes are evened out a little
_STEP = 0.02


def pfl(
    labels: Ints,
    n_parties: int,
    rng: Stream,
    *,
    seed: int,
    rule: Annotated[Literal["party-dir"], "Which of its partitions."] = "party-dir",
    version: Annotated[Literal["0.6.0"], "Of which release."] = "0.6.0",
    beta: Annotated[
        float, "Concentration of a party's Dirichlet draw (alpha there).", Above(0)
    ] = 0.1,
) -> Owners:
    """Replay of pfl-research: the rows of partition_by_dirichlet_class_distribution after
    np.random.seed(seed), for users of N // P examples each. Granqvist et al., NeurIPS 2024.

    Parties draw one after another; where a party draws classes of which nothing is left, its
    proportions are evened out step by step, so that the last ones are less skewed. What it draws
    is drawn again here, so `rng` is not used.

    Returns
    -------
    Owners
    """
    require_legacy_seed(seed)
    draws = LegacyDraws(seed)
    class_rows = [rows.tolist() for rows in list_rows(labels)]
    size = len(labels) // n_parties
    owner = np.full(len(labels), -1, np.int64)
    for party in range(n_parties):
        mixture = draws.dirichlet(beta, len(class_rows))
        owner[_draw_party(draws, mixture, class_rows, size)] = party
    return Owners(owner, {})


def _draw_party(
    draws: LegacyDraws, mixture: Floats, class_rows: list[list[int]], size: int
) -> list[int]:
    """Return the rows of one party, which are taken off the ends of their classes."""
    ends = exact.accumulate(mixture)
    ends[-1] = 1.0
    steps: list[float] = ends.tolist()
    rows: list[int] = []
    n_draws = 0
    while len(rows) < size:
        n_draws += 1
        place = bisect_right(steps, draws.uniform())
        label = place if place < len(steps) else 0  # as argmax has it where nothing is true
        if class_rows[label]:
            rows.append(class_rows[label].pop())
        if n_draws % (size * _PATIENCE) == 0:
            mixture = mixture + _STEP
            mixture = mixture / exact.add_in_order(mixture)
            steps = exact.accumulate(mixture).tolist()
            mixture[-1] = 1.0  # it means the last end, and sets the last proportion
    return rows
