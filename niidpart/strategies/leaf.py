"""Replay: LEAF's sampling of users or examples, and its training and test parts, row by row."""

from typing import Annotated, Literal

import numpy as np

from ..arithmetic.deal import split_by_class
from ..arithmetic.numpy_draws.pythons import PythonDraws
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError
from ..registry import Above, AtLeast, AtMost
from . import Arrays, Rows
from ._replays import PartyRows, join_rows

__all__ = ["leaf"]

PAPER = "caldas2018leaf"
READING = {"group": None, "homo": "sample"}  # by rule
RULES = {  # the options that each rule takes
    "group": ("sampled", "min_group", "train_fraction", "split_seed"),
    "homo": ("sampled", "min_group", "train_fraction", "split_seed"),
}


def leaf(
    labels: Ints,
    n_parties: int,
    rng: Stream,
    *,
    groups: Ints,
    seed: int,
    rule: Annotated[
        Literal["group", "homo"], "Whole users (niid), or examples of all users mixed (iid)."
    ] = "homo",
    version: Annotated[Literal["09ec454"], "Which commit of TalwalkarLab/leaf."] = "09ec454",
    sampled: Annotated[
        float, "Share of all examples that is sampled (--sf there).", Above(0), AtMost(1)
    ] = 0.1,
    min_group: Annotated[int, "Users of fewer examples are left out (-k there).", AtLeast(0)] = 0,
    train_fraction: Annotated[
        float,
        "Share of a user's examples to train on (--tf there, with -t sample); 1: no test parts.",
        Above(0),
        AtMost(1),
    ] = 1.0,
    split_seed: Annotated[
        int, "Seed of the test parts (--spltseed there); -1: that of the split.", AtLeast(-1)
    ] = -1,
) -> Rows:
    """Replay of LEAF: the rows that its preprocess.sh samples of one file of users with that seed
    (--smplseed there). Caldas et al., 2018.

    rule: group (-s niid): users in random order until they have the share, the last one cut; homo
    (-s iid): as many examples, dealt evenly to n_parties new users (--iu there says how many).
    Groups are the users, ascending as in the file, and so are the examples of each. LEAF samples
    each of its files by itself, FEMNIST's of 100 writers each, in the order in which the system
    lists them: one file is replayed. Its split by user (-t user) and its cut of Shakespeare are
    not. What it draws is drawn again here, so `rng` is not used.

    Returns
    -------
    Rows
        Part train, and test where train_fraction is below 1. Column, of the rule group: group [P].

    Raises
    ------
    UsageError
        For another number of parties than LEAF leaves, which the error says.
    """
    names, index = np.unique(groups, return_inverse=True)
    order = np.argsort(index.reshape(-1), kind="stable")
    users = [rows.tolist() for rows in split_by_class(order, np.bincount(index.reshape(-1)))]
    draws = PythonDraws(seed)
    n_wanted = int(sampled * len(labels))
    if rule == "homo":
        parties = list(enumerate(_sample_evenly(draws, order.tolist(), n_wanted, n_parties)))
    else:
        parties = _sample_users(draws, users, n_wanted)
    kept = [(user, rows) for user, rows in parties if len(rows) >= min_group]
    parts = {"train": [rows for _, rows in kept]}
    if train_fraction < 1:
        kept = [(user, rows) for user, rows in kept if len(rows) > 1]
        split_draws = PythonDraws(seed if split_seed == -1 else split_seed)
        parts = _hold_out(split_draws, [rows for _, rows in kept], train_fraction)
    if len(kept) != n_parties:
        raise UsageError(
            f"with seed {seed} LEAF leaves {len(kept)} of {len(users)} users, {n_parties} parties "
            f"were asked for; ask for {len(kept)}, or change sampled or min_group"
        )
    columns: Arrays = {}
    if rule == "group":
        columns = {"group": names[[user for user, _ in kept]]}
    joined = join_rows(parts, {})
    return Rows(joined.parts, {}, columns)


def _sample_evenly(draws: PythonDraws, rows: list[int], n_wanted: int, n_users: int) -> PartyRows:
    """Return a sample of the rows dealt to users in runs; the last users get one more."""
    sampled = draws.sample(rows, n_wanted)
    size, n_larger = divmod(n_wanted, n_users)
    sizes = [size] * (n_users - n_larger) + [size + 1] * n_larger
    ends = np.cumsum(sizes, dtype=np.int64).tolist()
    return [sampled[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _sample_users(
    draws: PythonDraws, users: PartyRows, n_wanted: int
) -> list[tuple[int, list[int]]]:
    """Return (user, rows) of users in random order until n_wanted rows are together.

    Of the last one the first rows are taken, in random order.
    """
    order = list(range(len(users)))
    draws.shuffle(order)
    sampled: list[tuple[int, list[int]]] = []
    n_missing = n_wanted
    for user in order:
        if not n_missing:
            break
        rows = users[user]
        if len(rows) > n_missing:
            rows = draws.sample(rows[:n_missing], n_missing)
        sampled.append((user, rows))
        n_missing -= len(rows)
    return sampled


def _hold_out(draws: PythonDraws, users: PartyRows, train_fraction: float) -> dict[str, PartyRows]:
    """Return a sample of each user's rows to train on, and the rest for the test part."""
    train, test = [], []
    for rows in users:
        n = len(rows)
        n_train = 1 if n == 2 else max(1, int(train_fraction * n))
        chosen = set(draws.sample(list(range(n)), n_train))
        train.append([row for place, row in enumerate(rows) if place in chosen])
        test.append([row for place, row in enumerate(rows) if place not in chosen])
    return {"train": train, "test": test}
