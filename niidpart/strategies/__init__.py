"""Who owns what: one file a strategy, named after its option; the folder is the registry.

A strategy is a pure function `(labels, n_parties, rng, *, options) -> Owners | Rows` of class ids [N] (0..K-1) and a stream. One that names
`groups` gets the data set's group ids [N], one that names `seed` the recipe's seed (replays of code that has a generator of its own); one that
names `min_size` meets it by `deal.fill_up`. All but the labels is handed over by name, so `n_parties` may have a default, behind the `*`. An
option `rule` makes it the replay of a peer, with the names of our strategies as values (`--like`). It sees numpy, `niidpart.rng`,
`niidpart.exact` and `niidpart.deal`, and nothing else of the project. What several share is in files that begin with `_`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..registry import Registry

Arrays = Mapping[str, NDArray[Any]]
_NONE: Arrays = MappingProxyType({})

STRATEGIES = Registry(
    "niidpart.strategies",
    "strategy",
    given=frozenset({"groups", "seed", "n_parties", "rng"}),
    beside=("n_parties", "seed", "val", "test", "transforms", "recipe", "like"),
)

Beta = Annotated[
    float, "Concentration of the Dirichlet draw, above 0: 0.1 is strong skew, 100 nearly none."
]
MinSize = Annotated[
    int,
    "Least number of examples of a party, 0 or more; smaller ones are filled up by moving rows.",
]


class Owners(NamedTuple):
    """What a strategy returns. Parties are disjoint by construction; `make` takes each party's own val and test parts from its examples.

    owner: [N] int64, the party that holds each example, -1 for nobody. draws: what was drawn on the way, by name, to be stored: arrays [n] or
    [n, m] of numbers. columns: one value a party, by name, to be stored and part of the digest (archetype, group).
    """

    owner: NDArray[Any]
    draws: Arrays
    columns: Arrays = _NONE


class Rows(NamedTuple):
    """What the few strategies return whose parties share examples, or that give each party its own val and test parts themselves.

    parts: "train", and "val" and "test" where there are any: (party [n], row [n]) int64 pairs in any order, none twice in a part. Two
    parties may hold a row; the parts have no row in common.
    """

    parts: Mapping[str, tuple[Ints, Ints]]
    draws: Arrays
    columns: Arrays = _NONE
