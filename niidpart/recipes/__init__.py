"""The settings of published experiments by name, `niid/mnist-dir0.5`.

One file a paper, which holds `RECIPES`; the folder is the registry.
"""

import difflib
import importlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import UsageError
from ..registry import did_you_mean, list_names

__all__ = ["NamedRecipe", "find_recipe", "list_papers", "list_recipes", "load_paper"]


@dataclass(frozen=True)
class NamedRecipe:
    """A setting of a paper: of which data set, and what `niidpart.make` is asked for.

    Parameters
    ----------
    about : str
        One line, with paper and section.
    dataset : str
        A file of `niidpart/sources`.
    strategy, params, n_parties, transforms, seed, val, test
        As `make` takes them; n_parties is None for the strategy's own number.
    source : mapping
        Options of the data set.

    Examples
    --------
    >>> recipe = find_recipe("niid/mnist-dir0.5")
    >>> recipe.dataset, recipe.strategy, dict(recipe.params)
    ('mnist', 'dir-balanced', {'beta': 0.5})
    """

    about: str
    dataset: str
    strategy: str
    params: Mapping[str, Any] = field(default_factory=dict)
    n_parties: int | None = 10
    transforms: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    seed: int = 0
    val: float = 0.0
    test: float = 0.0
    source: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return all fields as JSON has them.

        Returns
        -------
        dict

        Examples
        --------
        >>> find_recipe("niid/mnist-dir0.5").to_json()["n_parties"]
        10
        """
        return asdict(self)


def list_papers() -> list[str]:
    """Return the files of this folder.

    Returns
    -------
    list of str
        Sorted.

    Examples
    --------
    >>> list_papers()
    ['fedcd', 'fedrcl', 'fedrl', 'fedsam', 'fedsim', 'map004', 'niid']
    """
    return list_names("niidpart.recipes")


def load_paper(paper: str) -> dict[str, NamedRecipe]:
    """Return all recipes of one paper.

    Parameters
    ----------
    paper : str
        A file of `niidpart/recipes`.

    Returns
    -------
    dict of str to NamedRecipe
        By name, which begins with the paper's.

    Raises
    ------
    UsageError
        For a paper that is not there; it says which is nearest.

    Examples
    --------
    >>> list(load_paper("niid"))[0]
    'niid/mnist-dir0.5'
    """
    papers = list_papers()
    if paper not in papers:
        raise UsageError(f"there are no recipes {paper!r}; {did_you_mean(paper, papers)}")
    module = importlib.import_module(f"{__name__}.{paper.replace('-', '_')}")
    recipes: dict[str, NamedRecipe] = module.RECIPES
    return {f"{paper}/{name}": recipe for name, recipe in recipes.items()}


def list_recipes() -> list[str]:
    """Return all names, paper by paper.

    Returns
    -------
    list of str

    Examples
    --------
    >>> "niid/mnist-dir0.5" in list_recipes()
    True
    """
    return [name for paper in list_papers() for name in load_paper(paper)]


def find_recipe(name: str) -> NamedRecipe:
    """Return the recipe of a name.

    Parameters
    ----------
    name : str
        The paper and the setting, `niid/mnist-dir0.5`.

    Returns
    -------
    NamedRecipe

    Raises
    ------
    UsageError
        For a name that is not there; it says which is nearest.

    Examples
    --------
    >>> find_recipe("niid/mnist-dir0.5").n_parties
    10
    """
    paper = name.partition("/")[0]
    recipes = load_paper(paper) if paper in list_papers() else {}
    if name not in recipes:
        known = list_recipes()
        near = " or ".join(difflib.get_close_matches(name, known, n=3, cutoff=0.5))
        guess = f"did you mean {near}? " if near else ""
        raise UsageError(f"unknown recipe {name!r}; {guess}niidpart recipes lists all {len(known)}")
    return recipes[name]
