"""`niidpart recipes`."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from ..command import AdvisingCommand
from ..options import KnownName, to_flag
from ..terminal import say
from .params import declare_json

if TYPE_CHECKING:
    from niidpart import Recipe
    from niidpart.recipes import NamedRecipe


def _list_names() -> list[str]:
    from niidpart import recipes

    return [*recipes.list_papers(), *recipes.list_recipes()]


NAME = KnownName(_list_names)


def recipes_command() -> click.Command:
    return AdvisingCommand(
        "recipes",
        callback=list_recipes,
        help="List the settings of published experiments; with NAME those of one paper (niid), or "
        "all of one setting (niid/mnist-dir0.5).",
        params=[click.Argument(["name"], required=False, type=NAME), declare_json()],
    )


def list_recipes(name: str | None, as_json: bool) -> None:
    found = _find_recipes(name)
    if as_json:
        say(json.dumps({key: _to_json(key, recipe) for key, recipe in found.items()}))
    elif name and "/" in name:
        say("\n".join(_describe(key, recipe) for key, recipe in found.items()))
    else:
        width = max(map(len, found))
        say("\n".join(f"{key:{width}}  {recipe.about}" for key, recipe in found.items()))


def _find_recipes(name: str | None) -> dict[str, "NamedRecipe"]:
    """All recipes, those of one paper, or the one of that name."""
    from niidpart import recipes

    if name and "/" in name:
        return {name: recipes.find_recipe(name)}
    found: dict[str, NamedRecipe] = {}
    for paper in [name] if name else recipes.list_papers():
        found |= recipes.load_paper(paper)
    return found


def _to_json(name: str, recipe: "NamedRecipe") -> dict[str, Any]:
    return {**recipe.to_json(), "recipe": _complete(name).to_json()}


def _complete(name: str) -> "Recipe":
    from niidpart.making.completion import compose

    return compose(recipe=name)


def _describe(name: str, recipe: "NamedRecipe") -> str:
    """What it is, and the command that says the same without the name."""
    whole = _complete(name)
    parties = f"{whole.n_parties}, seed {whole.seed}"
    for part, fraction in _list_parts(whole):
        parties += f", {part} {fraction}"
    lines = [
        f"{name}: {recipe.about}",
        f"data      {_join_step(recipe.dataset, recipe.source)}",
        f"strategy  {_join_step(whole.strategy, whole.params)}",
        *(f"transform {_join_step(t.name, t.params)}" for t in whole.transforms),
        f"parties   {parties}",
        f"command   {_write_command(recipe, whole)}",
    ]
    return "\n".join(lines)


def _list_parts(whole: "Recipe") -> list[tuple[str, float]]:
    """The parts that parties hold out, and their fractions."""
    return [(part, f) for part, f in (("val", whole.val), ("test", whole.test)) if f]


def _join_step(name: str, params: Mapping[str, Any]) -> str:
    pairs = [f"{key}={_format_value(value)}" for key, value in _select_set(params)]
    return " ".join([name, *pairs])


def _select_set(params: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(key, value) for key, value in params.items() if value is not None]


def _write_command(recipe: "NamedRecipe", whole: "Recipe") -> str:
    words = ["niidpart make", f"--dataset {recipe.dataset}", "--data-root DIR"]
    words += [_format_flag(key, value) for key, value in recipe.source.items()]
    words.append(f"--strategy {whole.strategy}")
    words += [_format_flag(key, value) for key, value in _select_set(whole.params)]
    for step in whole.transforms:
        pairs = [f"{key}={_format_value(value)}" for key, value in step.params.items()]
        words.append(f"--transform {step.name}:{','.join(pairs)}")
    words += [f"--parties {whole.n_parties}", f"--seed {whole.seed}"]
    words += [f"--{part} {fraction}" for part, fraction in _list_parts(whole)]
    return " ".join(words)


def _format_flag(key: str, value: Any) -> str:
    flag = to_flag(key)
    if isinstance(value, bool):
        return flag if value else f"--no-{flag[2:]}"
    return f"{flag} {value}"


def _format_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
