"""Splits in the layouts of other libraries: one file a format, named after its option; the folder is the registry.

An exporter is `(split, data, *, options) -> Iterator[tuple[str, bytes]]`: the path of a file inside the folder (with `/`) and its content, one file
at a time, so that large data fits in memory. `data: Data` says that it needs the data set, `data: Data | None` that it can go without (unless its
option `include_data` is true). It yields files and touches no disk; `niidpart.export` writes them, whole or not at all. Its file says in `HOLDS`
which of `LOSABLE` the format can say; `niidpart.export` refuses a split that has more than that, unless losing is allowed.

An importer, where there is one, is `read(folder, data, *, options) -> Imported` in the same file. What several share is in files that begin with `_`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..data import Data
from ..registry import Registry

__all__ = ["FORMATS", "LOSABLE", "Imported"]

FORMATS = Registry("niidpart.formats", "format", given=frozenset({"split", "data"}))

LOSABLE = {  # what a split and its data may have beside training parts, and how an error calls it; a format's HOLDS is a subset of these keys
    "val": "the parties' validation parts",
    "test": "the parties' test parts",
    "overlap": "that parties share examples",
    "columns": "the values of each party",
    "classes": "the names of the classes",
    "transforms": "the fixed noise of the parties",
    "fresh": "the noise that is drawn afresh in training",
    "precision": "the digits of the features",
    "recipe": "the recipe, so that it can be derived again",
}


class Imported(NamedTuple):
    """What an importer returns: rows of `data` by party.

    parts: "train", and "val" and "test" where there are any: (party [n], row [n]) int64 pairs in any order, none twice in a part.
    columns: one value a party, by name. about: what the folder's niidpart.json says, {} where there is none.
    """

    data: Data
    n_parties: int
    parts: Mapping[str, tuple[Ints, Ints]]
    columns: Mapping[str, NDArray[Any]] = MappingProxyType({})
    about: Mapping[str, Any] = MappingProxyType({})
