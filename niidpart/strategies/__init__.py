"""Who owns what: one file a strategy, named after its option; the folder is the registry.

A strategy is a pure function `(labels, n_parties, rng, *, options) -> Owners | Rows`, or, where it
needs of the labels nothing but how many there are of each class, `(class_sizes, n_parties, rng, *,
options) -> Deal`. A deal is carried out by `make` (`niidpart/making/deals.py`), in memory or on the
disk, so such a strategy serves data sets of any size. One that takes labels may return a `Deal`
too, with an order of its own that is cut into parties; that goes in memory alone.

- labels: [N] int64 class ids 0..K-1.
- class_sizes: [K] int64 examples of each class.
- n_parties: how many parties. It may have a default, behind the `*`, since all but the labels is
  handed over by name; a Literal says that only these numbers are possible.
- rng: a `Stream`, the only source of randomness.
- groups, if it names them: [N] the data set's group ids.
- features, if it names it: a function that gives [n, ...] numbers of rows: the embeddings that were
  handed over, else the features of the data set; None where there are neither.
- seed, if it names it: the recipe's seed, for replays of code that has a generator of its own.
- min_size, if it has this option: it hands it on in its `Deal`, or meets it by `deal.fill_up`.
- rule, if it has this option: it is the replay of a peer (`--like`), and the values of `rule` are
  names of our strategies. PEER names the peer where that is not the strategy's own name.

Beside it the file says `READING`, what the counts of a party are to be taken for when the skew is
measured: "sample" where chance decides of which class an example is, "proportions" where counts are
proportions rounded to whole examples, "rough-proportions" where that was done more than once or by
cutting, None where nobody knows, since the examples came in groups. A replay has a table of them,
by rule. And `PAPER`, the key of the rule's paper in `niidpart/citing/references.bib`;
and, where skew is turned by another option than beta, `SKEWED_BY`, its name, for `--target`; where
measures of sizes are turned by another one than that of labels, `SIZED_BY`, its name. A replay has
a table of the first by rule as well.

It sees numpy, niidpart's arithmetic, errors and registry, and nothing else of the project. It has
to give the same bits on every machine: tests/niidpart/test_walls_bits.py says which functions do.
What several strategies share is in files that begin with `_`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..registry import AtLeast, AtMost, Registry

__all__ = ["STRATEGIES", "Arrays", "Beta", "Deal", "MinSize", "Owners", "Rows"]

Arrays = Mapping[str, NDArray[Any]]
_NONE: Arrays = MappingProxyType({})

STRATEGIES = Registry(
    "niidpart.strategies",
    "strategy",
    given=frozenset({"groups", "features", "seed", "n_parties", "rng"}),
    caller_options=("n_parties", "seed", "val", "test", "transforms", "recipe", "like"),
)

# Options that several strategies have.
Beta = Annotated[
    float,
    "Concentration of the Dirichlet draw: 0.1 is strong skew, 100 nearly none.",
    AtLeast(1e-9),  # beyond these the logarithms of the draws lose their digits
    AtMost(1e9),
]
MinSize = Annotated[
    int,
    "Least number of examples of a party; smaller ones are filled up by moving rows.",
    AtLeast(0),
]


class Owners(NamedTuple):
    """The result of a strategy that gives each example to one party.

    Parties are disjoint by construction. `make` takes each party's own validation and test parts
    from its examples.

    Parameters
    ----------
    owner : array of int [N]
        The party that holds each example, -1 for nobody.
    draws : mapping of str to array
        What was drawn on the way, to be stored: arrays [n] or [n, m] of numbers.
    columns : mapping of str to array [P], optional
        One value a party, to be stored and part of the digest (archetype, group).

    Examples
    --------
    >>> import numpy as np
    >>> Owners(np.array([0, 1, 1, -1]), {}).owner.tolist()
    [0, 1, 1, -1]
    """

    owner: NDArray[Any]
    draws: Arrays
    columns: Arrays = _NONE


class Deal(NamedTuple):
    """The result of a strategy that says who gets how many, and mostly leaves to chance which ones.

    The examples are put in a random order (the stream "order"), or in the deal's own, and dealt:
    the first of them to the first holder, as many as the first size says, the next to the second,
    and so on.

    Parameters
    ----------
    holders : array of int [R]
        The party that each run of the order goes to, -1 for nobody.
    sizes : array of int [R]
        How many examples each run has; they sum to N.
    draws : mapping of str to array
        As those of `Owners`.
    by_class : bool, optional
        The random order goes class by class, and filling up heeds classes; else neither does.
    min_size : int, optional
        Smaller parties are filled up by moving examples, which are stored as the draw `moved`.
    rank : array of int [P], optional
        A random order of the parties, which settles ties in this; None: nothing is filled up.
    order : array of int [N], optional
        The examples in an order of the strategy's own, each once, for a strategy that takes
        labels.

    Examples
    --------
    >>> import numpy as np
    >>> Deal(holders=np.array([1, 0]), sizes=np.array([3, 2]), draws={}).by_class
    True
    """

    holders: NDArray[Any]
    sizes: Ints
    draws: Arrays
    by_class: bool = True
    min_size: int = 0
    rank: Ints | None = None
    order: Ints | None = None


class Rows(NamedTuple):
    """The result of a strategy whose parties share examples, or that makes val and test itself.

    Parameters
    ----------
    parts : mapping of str to (party [n], row [n])
        "train", and "val" and "test" where there are any: pairs of integers in any order, none
        twice in a part. Two parties may hold a row; the parts have no row in common.
    draws : mapping of str to array
        As those of `Owners`.
    columns : mapping of str to array [P], optional
        As those of `Owners`.

    Examples
    --------
    >>> import numpy as np
    >>> party, row = np.array([0, 1, 1]), np.array([0, 0, 2])  # both hold row 0
    >>> Rows({"train": (party, row)}, {}).parts["train"][1].tolist()
    [0, 0, 2]
    """

    parts: Mapping[str, tuple[NDArray[Any], NDArray[Any]]]
    draws: Arrays
    columns: Arrays = _NONE
