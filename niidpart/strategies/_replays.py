"""What replays of published code share: options of their rules, cuts of classes, parts in order."""

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, cast

import numpy as np

from ..arithmetic import exact
from ..arithmetic.deal import split_by_class
from ..arithmetic.exact import Floats
from ..arithmetic.numpy_draws.floats import add_as_numpy
from ..arithmetic.rng import Ints
from ..errors import UsageError
from . import Arrays, Deal, Owners, Rows

LARGEST_SEED = (1 << 32) - 1  # of numpy's legacy generator
_COUNTED = (np.uint8, np.uint16)  # types that numpy sorts by counting

PartyRows = list[list[int]]  # each party's, in the order in which they are dealt
Rules = Mapping[str, tuple[str, ...]]  # the options that each rule of a peer takes


def require_own_options(
    rules: Rules, rule: str, given: Mapping[str, Any], peer: Callable[..., Owners | Deal | Rows]
) -> None:
    """Raise UsageError for an option that was set and belongs to other rules.

    given: values of all options that some rule has. peer: in whose signature their defaults stand.
    """
    defaults = cast(FunctionType, peer).__kwdefaults__ or {}  # to read its signature takes longer
    for name, value in given.items():
        if name not in rules[rule] and value != defaults[name]:
            owners = [key for key, names in rules.items() if name in names]
            of_rules = "rules" if len(owners) > 1 else "rule"
            belongs = f"{name} belongs to the {of_rules} {' and '.join(owners)}"
            raise UsageError(f"{belongs}, the rule is {rule}")


def require_legacy_seed(seed: int) -> None:
    """Raise UsageError for a seed that `np.random.seed` does not take."""
    if seed > LARGEST_SEED:
        raise UsageError(f"seed is {seed}; the published code takes 0..{LARGEST_SEED}")


def list_rows(labels: Ints) -> list[Ints]:
    """Return the rows of each class, ascending."""
    sizes = np.bincount(labels)
    return split_by_class(sort_by_class(labels), sizes)


def sort_by_class(labels: Ints) -> Ints:
    """Return the rows class by class, ascending within each.

    Of numbers of up to 16 bits numpy counts digits, a byte at a time, which takes a tenth of the
    time of comparing.
    """
    most = labels.max(initial=0)
    narrow = next((kind for kind in _COUNTED if most <= np.iinfo(kind).max), labels.dtype)
    return np.argsort(labels.astype(narrow, copy=False), kind="stable")


def cut_counts(proportions: Floats, n: int) -> Ints:
    """Return [P] how many of n rows each party gets: cut at floor(cumsum(proportions) * n).

    The last party takes the rest, and all where a proportion is NaN.
    """
    ends = exact.accumulate(proportions) * n
    cuts = np.where(np.isnan(ends), 0.0, ends)[:-1].astype(np.int64)
    return np.diff(np.concatenate([[0], cuts, [n]]))


def normalise(proportions: Floats) -> Floats:
    """Return proportions over their sum; NaN where that is 0."""
    with np.errstate(invalid="ignore"):
        return proportions / add_as_numpy(proportions)


def cut_in_order(order: Ints, sizes: Ints) -> Deal:
    """Return the deal whose parties take as many of an order as their sizes say, one after another.

    What is left belongs to nobody. Who owns which row is written down where the deal is carried
    out, and not before: the code that is replayed hands out pieces of the order too.
    """
    rest = len(order) - sizes.sum(dtype=np.int64)
    holders = np.arange(len(sizes) + 1)
    holders[-1] = -1
    return Deal(holders, np.append(sizes, rest), {}, order=order)


def join_rows(parts: Mapping[str, Sequence[Sequence[int] | Ints]], draws: Arrays) -> Rows:
    """Return the split of each part's rows, party by party."""
    return Rows({name: join_parties(held) for name, held in parts.items()}, draws)


def join_once(parts: Mapping[str, tuple[Ints, Ints]]) -> Rows:
    """Return the split of each part's pairs (party, row) without those that stand there again.

    These are the draw `again`, for the published code deals them.
    """
    once, again = {}, []
    for name, (party, row) in parts.items():
        by_pair = np.lexsort((row, party))
        party, row = party[by_pair], row[by_pair]
        is_again = np.zeros(len(row), bool)
        is_again[1:] = (party[1:] == party[:-1]) & (row[1:] == row[:-1])
        again.append(np.stack([party[is_again], row[is_again]], axis=1))
        once[name] = (party[~is_again], row[~is_again])
    return Rows(once, {"again": np.concatenate(again)})


def join_parties(held: Sequence[Sequence[int] | Ints]) -> tuple[Ints, Ints]:
    """Return the pairs (party, row) of a part, party by party."""
    arrays = [np.asarray(rows, np.int64) for rows in held]
    party = np.repeat(np.arange(len(arrays)), [len(rows) for rows in arrays])
    return party, np.concatenate(arrays)


def store_tries(tries: int) -> Arrays:
    """Return the draw that says how often the published code drew."""
    return {"tries": np.array([tries], np.int64)}


def limit_tries(work: int) -> int:
    """Return how many tries are made: some ten seconds' worth, from 100 to 10,000."""
    return max(100, min(10_000, 5 * 10**8 // work))


def refuse_endless(tries: int, what: str, asked: str, alternative: str) -> UsageError:
    """Return the error where the published code would go on drawing. what: that is drawn."""
    return UsageError(
        f"in {tries} tries no draw of {what} gave {asked}, and the published code would go on "
        f"drawing; the strategy {alternative} draws once"
    )
