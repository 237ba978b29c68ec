"""Replay: PFLlib's generators of data, row by row, with their training and test parts."""

from typing import Annotated, Literal

from ..arithmetic.numpy_draws.legacy import LegacyDraws
from ..arithmetic.rng import Ints, Stream
from ..registry import Above, AtLeast
from . import Arrays, Rows
from ._pfllib_rules import cut_among_holders, cut_by_class, deal_in_turn
from ._replays import PartyRows, join_rows, require_legacy_seed, require_own_options

__all__ = ["pfllib"]

PAPER = "zhang2025pfllib"
READING = {  # by rule
    "dir": "rough-proportions",  # cut at whole examples
    "extended-dir": "rough-proportions",
    "homo": "rough-proportions",
    "labels": "rough-proportions",
}
SKEWED_BY = {"dir": "beta", "extended-dir": "beta", "labels": "k"}  # by rule
RULES = {  # the options that each rule takes
    "dir": ("beta",),
    "extended-dir": ("beta", "k"),
    "homo": ("even",),
    "labels": ("k", "even"),
}


def pfllib(
    labels: Ints,
    n_parties: int,
    rng: Stream,
    *,
    seed: int,
    rule: Annotated[
        Literal["dir", "extended-dir", "homo", "labels"], "Which of its partitions."
    ] = "dir",
    version: Annotated[Literal["d832e76"], "Which commit of TsingZ0/PFLlib."] = "d832e76",
    beta: Annotated[float, "Concentration of the Dirichlet draw (alpha there).", Above(0)] = 0.1,
    k: Annotated[int, "Classes that each party holds (class_per_client there).", AtLeast(1)] = 2,
    even: Annotated[
        bool, "The holders of a class share it evenly (balance there), else at random."
    ] = False,
) -> Rows:
    """Replay of PFLlib: the rows of its generators with that seed (theirs is 1), three quarters of
    each party's for training and the rest for its test part. Zhang et al., JMLR 2025.

    rule: dir (noniid - dir), labels (noniid - pat), extended-dir (noniid - exdir), homo (iid). Its
    generators put a data set's training and test rows together first: say --pool. What they draw
    is drawn again here, so `rng` is not used.

    Returns
    -------
    Rows
        Parts train and test. Draws: tries [1], of dir and extended-dir.

    Raises
    ------
    UsageError
        Where the published code stops or never ends, and for an option of another rule.
    """
    given = {"beta": beta, "k": k, "even": even}
    require_own_options(RULES, rule, given, pfllib)
    require_legacy_seed(seed)
    draws = LegacyDraws(seed)
    stored: Arrays = {}
    match rule:
        case "dir":
            parties, stored = cut_by_class(draws, labels, n_parties, beta)
        case "extended-dir":
            parties, stored = cut_among_holders(draws, labels, n_parties, beta, k)
        case "labels":
            parties = deal_in_turn(draws, labels, n_parties, k, even)
        case _:
            n_classes = int(labels.max()) + 1
            parties = deal_in_turn(draws, labels, n_parties, n_classes, even)
    return join_rows(_hold_out(draws, parties), stored)


def _hold_out(draws: LegacyDraws, parties: PartyRows) -> dict[str, PartyRows]:
    """Return each party's rows, a quarter of them rounded up for its test part.

    As train_test_split of scikit-learn, which draws from numpy's generator too.
    """
    train, test = [], []
    for rows in parties:
        n_test = len(rows) - len(rows) * 3 // 4
        order = draws.permutation(len(rows)).tolist()
        test.append([rows[place] for place in order[:n_test]])
        train.append([rows[place] for place in order[n_test:]])
    return {"train": train, "test": test}
