"""The settings of published experiments by name, `niid/mnist-dir0.5`: one file a paper, which holds `RECIPES`; the folder is the registry."""

import difflib
import importlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import UsageError
from ..registry import did_you_mean, list_names

JSON = Mapping[str, Any]


@dataclass(frozen=True)
class NamedRecipe:
    """A setting of a paper: of which data set, and what `niidpart.make` is asked for.

    about: one line, with paper and section. dataset, source: a file of `niidpart/sources` and its options. n_parties: None for the strategy's own
    number. The rest is as `make` takes it.
    """

    about: str
    dataset: str
    strategy: str
    params: JSON = field(default_factory=dict)
    n_parties: int | None = 10
    transforms: tuple[tuple[str, JSON], ...] = ()
    seed: int = 0
    val: float = 0.0
    test: float = 0.0
    source: JSON = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def list_papers() -> list[str]:
    """The files of this folder, sorted."""
    return list_names("niidpart.recipes")


def load_paper(paper: str) -> dict[str, NamedRecipe]:
    """All recipes of one paper by name; ValueError with the nearest paper where there is none."""
    if paper not in list_papers():
        raise UsageError(f"there are no recipes {paper!r}; {did_you_mean(paper, list_papers())}")
    recipes: dict[str, NamedRecipe] = importlib.import_module(
        f"{__name__}.{paper.replace('-', '_')}"
    ).RECIPES
    return {f"{paper}/{name}": recipe for name, recipe in recipes.items()}


def list_recipes() -> list[str]:
    """All names, paper by paper."""
    return [name for paper in list_papers() for name in load_paper(paper)]


def find_recipe(name: str) -> NamedRecipe:
    """The recipe of a name; ValueError with the nearest one where there is none."""
    paper = name.partition("/")[0]
    recipes = load_paper(paper) if paper in list_papers() else {}
    if name not in recipes:
        near = " or ".join(difflib.get_close_matches(name, list_recipes(), n=3, cutoff=0.5))
        raise UsageError(
            f"unknown recipe {name!r}; {f'did you mean {near}? ' if near else ''}niidpart recipes lists all {len(list_recipes())}"
        )
    return recipes[name]
