"""`FederatedSplit`: a split in memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from ..errors import UsageError, require_type
from ..heterogeneity import Skew
from .dealing import measure_skew
from .digests import digest_split
from .holdings import count_holdings
from .part import PARTS, Part, make_read_only, require_party
from .recipe import Recipe, Source


@dataclass(frozen=True, eq=False)
class FederatedSplit:
    """Who holds what, how it was drawn, and of which data.

    `niidpart.make` makes one, `niidpart.read` reads one. It keeps the protocol `SplitView`, as an
    open file does.

    Parameters
    ----------
    recipe : Recipe
        What was asked for.
    source : Source
        Which data the split is of.
    train, val, test : Part
        The rows of each party.
    draws : mapping of str to array
        What the strategy drew, by name.
    columns : mapping of str to array [P]
        One value a party, by name (noise seed, noise level, ...).
    root : str
        Where the data was found on the disk of whoever made the split: a hint, outside the digest.

    Raises
    ------
    UsageError
        A field is of another type, or a part or a column of another number of parties than the
        recipe.

    Examples
    --------
    >>> import niidpart, numpy as np
    >>> split = niidpart.make(np.arange(100) % 4, "dir", n_parties=5, beta=0.5, min_size=2)
    >>> split.n_parties, split.train.n, split.train.counts.shape
    (5, 100, (5, 4))
    >>> split.digest == niidpart.make(np.arange(100) % 4, recipe=split.recipe).digest
    True
    """

    recipe: Recipe
    source: Source
    train: Part
    val: Part
    test: Part
    draws: Mapping[str, NDArray[Any]]
    columns: Mapping[str, NDArray[Any]]
    root: str = ""

    def __post_init__(self) -> None:
        for name in PARTS:
            require_type(name, getattr(self, name), Part)
        require_type("recipe", self.recipe, Recipe)
        require_type("source", self.source, Source)
        for kind in ("draws", "columns"):
            arrays = getattr(self, kind)
            require_type(kind, arrays, Mapping)
            views = {}
            for name, array in arrays.items():
                views[name] = make_read_only(f"{kind}[{name!r}]", array)
            object.__setattr__(self, kind, views)
        P = self.recipe.n_parties
        for name, part in self.parts.items():
            if part.n_parties != P:
                raise UsageError(f"{name} has {part.n_parties} parties, the recipe has {P}")
        for name, column in self.columns.items():
            if column.shape != (P,):
                got = list(column.shape)
                raise UsageError(f"the column {name!r} has shape {got}; [{P}] is needed")

    @property
    def n_parties(self) -> int:
        """Parties of the split, those without examples among them."""
        return self.recipe.n_parties

    @property
    def parts(self) -> dict[str, Part]:
        """The parts by name: train, val, test."""
        return {name: getattr(self, name) for name in PARTS}

    def party_values(self, p: int) -> dict[str, Any]:
        """Return party p's value of each column, by name.

        Raises
        ------
        IndexError
            There is no such party.
        """
        require_party(p, self.n_parties)
        return {name: column[p] for name, column in self.columns.items()}

    @cached_property
    def n_held(self) -> int:
        """Examples of the data set that some party holds."""
        return count_holdings(self.parts.values(), self.source.n)[0]

    @property
    def n_unheld(self) -> int:
        """Examples of the data set that no party holds."""
        return self.source.n - self.n_held

    @property
    def overlaps(self) -> bool:
        """True if two parties share an example."""
        n_rows = sum(part.n for part in self.parts.values())
        return self.n_held < n_rows

    @cached_property
    def digest(self) -> str:
        """The split's name: sha256 over recipe, source, parts, party columns and format version."""
        parts = {name: part.digest for name, part in self.parts.items()}
        return digest_split(self.recipe, self.source, parts, self.columns)

    @cached_property
    def skew(self) -> Skew:
        """How skewed the training part is: MAP beta and all measures.

        Computed from the counts when first asked for, which are taken for what the recipe's
        strategy says that they are; `niidpart.measure_skew` takes them for something else.
        """
        return measure_skew(self)

    def __repr__(self) -> str:
        how = f"{self.recipe.strategy} {self.recipe.params}, {self.n_parties} parties"
        data = f"{self.source.name} [{self.source.n}]"
        return f"FederatedSplit({how}, {data}, {self.digest[:12]})"


def adopt_skew(split: FederatedSplit, skew: Skew) -> None:
    """Have a split answer with a skew that is known to be its own, instead of computing it."""
    split.__dict__["skew"] = skew  # where `cached_property` looks first


def find_known_skew(split: FederatedSplit) -> Skew | None:
    """Return the skew of a split where it was adopted or computed already; computes nothing."""
    known: Skew | None = split.__dict__.get("skew")
    return known
