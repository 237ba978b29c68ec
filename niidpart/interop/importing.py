"""`import_`: a split out of a folder that another program wrote."""

import typing
import warnings
from dataclasses import replace
from inspect import getmodule
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Data
from ..errors import FileFault, UsageError
from ..formats import FORMATS, Imported
from ..formats._shared import ABOUT
from ..making.completion import complete_recipe
from ..making.derivation import derive
from ..making.owners import build_parts, check_strategy_result
from ..registry import Function, Registry
from ..splits.digests import digest_array
from ..splits.recipe import IMPORTED, JSON, Recipe
from ..splits.split import FederatedSplit
from ..strategies import STRATEGIES, Rows


class _Importers(Registry):
    """The formats that have a function `read`."""

    def names(self) -> list[str]:
        return [name for name in FORMATS.names() if hasattr(FORMATS.module(name), "read")]

    def find(self, name: str) -> Function:
        module = getmodule(FORMATS.find(name))
        if not hasattr(module, "read"):
            why = getattr(module, "ONLY_OUT", "it is for export alone")
            raise UsageError(
                f"format {name!r} cannot be imported: {why}. There are: {', '.join(self.names())}"
            )
        function: Function = module.read  # type: ignore[union-attr]
        return function

    def names_a_data_set(self, name: str) -> bool:
        """Whether the format names rows of a data set that has to be handed over; else it holds the examples itself."""
        return typing.get_type_hints(self.find(name)).get("data") is Data


IMPORTERS = _Importers("niidpart.formats", "format", given=frozenset({"folder", "data"}))


def import_(
    folder: str | Path, format: str, *, data: Data | None = None, **options: Any
) -> FederatedSplit:
    """The split that a folder holds in `format` (one of `niidpart/formats` that has `read`).

    data: the data set whose rows the folder names; formats that hold the examples themselves go without, and then the folder is the data set.
    options: the format's own. Where the folder says by which recipe of niidpart it was made (niidpart.json), and that recipe gives just these rows
    again, the split has that recipe. Else its strategy is `imported`: who holds what is stored, nothing derives it, and `verify` says so.
    Warns where a stated recipe is not taken, and where most parties hold nothing. FileFault where the folder is not as it must be, is of other
    data, or holds other rows than niidpart.json says.
    """
    folder = Path(folder)
    read, options = IMPORTERS.find(format), IMPORTERS.complete(format, options)
    if data is None and IMPORTERS.names_a_data_set(format):
        raise UsageError(
            f"format {format!r} names rows of a data set; hand that over (data=niidpart.load(...); on the command line --dataset)"
        )
    if not folder.exists():
        raise FileNotFoundError(f"there is no folder {folder}")
    found: Imported = read(folder, data, **options)
    said, recipe = (
        dict(found.about),
        Recipe(strategy=IMPORTED, params={"format": format}, n_parties=max(found.n_parties, 1)),
    )
    _of_these_data(folder, said, found.data)
    try:
        rows = check_strategy_result(Rows(found.parts, {}, found.columns), recipe)
        parts = build_parts(rows, recipe, found.data.labels, len(found.data.class_names))
    except ValueError as error:
        raise FileFault(
            f"{folder} is no split of these data: {str(error).replace(f'strategy {IMPORTED!r}', 'it')}"
        ) from error
    split = FederatedSplit(
        recipe,
        found.data.source,
        **parts,
        draws={},
        columns=dict(found.columns),
        root=found.data.root,
    )
    _as_stated(folder, said, split)
    if derived := _derived(split, said, found.data):
        return derived
    if said:
        stated = ascii(said["recipe"].get("strategy"))[:60]
        warnings.warn(
            f"{ABOUT} states a recipe ({stated}) that does not give these rows and columns here; the split comes in as `imported`",
            stacklevel=2,
        )
    empty = split.n_parties - np.count_nonzero(
        np.sum([part.sizes for part in split.parts.values()], axis=0)
    )
    if 2 * empty > split.n_parties:
        warnings.warn(
            f"{empty} of {split.n_parties} parties hold no example: numbers of parties are taken as they are, from 0 on",
            stacklevel=2,
        )
    return split


def _of_these_data(folder: Path, said: JSON, data: Data) -> None:
    """FileFault where the folder says that it is of other data."""
    if not said:
        return
    made_for = said["source"]
    if (made_for.get("n"), made_for.get("labels_sha256")) != (
        len(data.labels),
        data.source.labels_sha256,
    ):
        theirs = f"{str(made_for.get('name'))[:40]!r} with {str(made_for.get('n'))[:20]} examples"
        raise FileFault(
            f"{folder} was made of {theirs} and other labels, not of these {len(data.labels)} examples of {data.name!r}"
        )


def _as_stated(folder: Path, said: JSON, split: FederatedSplit) -> None:
    """FileFault where the folder states the digests of other rows."""
    if wrong := [
        name
        for name, part in split.parts.items()
        if said and said["parts"].get(name) != part.digest
    ]:
        what = f"the rows of {', '.join(wrong)} in {folder} are not what {ABOUT} says: they were damaged, cut or changed"
        raise FileFault(
            f"{what}; get the folder anew, or remove {ABOUT} to import the rows as they are"
        )


def _derived(split: FederatedSplit, said: JSON, data: Data) -> FederatedSplit | None:
    """The split as the recipe gives it that the folder states; None where that is none of niidpart's, or gives other rows or columns."""
    try:
        recipe = Recipe.from_json(said["recipe"])
        if recipe in [replace(split.recipe, params={"format": name}) for name in FORMATS.names()]:
            return replace(split, recipe=recipe)  # it had come in before
        if (
            recipe.strategy not in STRATEGIES.names()
            or recipe.n_parties != split.n_parties
            or complete_recipe(recipe) != recipe
        ):
            return None
        derived = replace(derive(data, recipe), root=split.root)
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
    ):  # a stranger's recipe may be wrong in any way
        return None
    same = all(derived.parts[name].digest == part.digest for name, part in split.parts.items())
    columns = {name: digest_array(column) for name, column in derived.columns.items()}
    return (
        derived
        if same
        and columns == {name: digest_array(column) for name, column in split.columns.items()}
        else None
    )
