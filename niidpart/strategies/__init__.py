"""Who owns what: one file a strategy, named after its option; the folder is the registry.

A strategy is a pure function `(labels, n_parties, rng, *, options) -> Owners` of class ids [N] (0..K-1) and a stream. One that names
`groups` gets the data set's group ids [N]; one that names `min_size` meets it by `deal.at_least`. `n_parties` may have a default.
It sees numpy, `niidpart.rng` and `niidpart.deal`, and nothing else of the project.
"""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from ..rng import Ints


class Owners(NamedTuple):
    """owner [N] int64: the party that holds each example, -1 for nobody. draws: what was drawn on the way, by name, to be stored."""

    owner: Ints
    draws: dict[str, NDArray[Any]]
