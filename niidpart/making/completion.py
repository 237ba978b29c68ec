"""`compose`: from what was asked for to a complete Recipe, with every option checked and every default written out."""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, signature
from typing import Any

from ..errors import UsageError
from ..recipes import find_recipe
from ..registry import UNSET, did_you_mean
from ..splits.recipe import Recipe, Transform
from ..strategies import STRATEGIES
from ..transforms import TRANSFORMS


def compose(
    strategy: str | None = None,
    *,
    recipe: str | Recipe | None = None,
    like: str | None = None,
    n_parties: int | None = None,
    seed: int = UNSET,
    transforms: Sequence[tuple[str, Mapping[str, Any]]] | None = None,
    val: float = UNSET,
    test: float = UNSET,
    **options: Any,
) -> Recipe:
    """The complete Recipe of what `make` is asked for: every option checked, every default written out.

    A transform's name as strategy is `homo` with that transform. Of a `recipe`, the strategy's options go where another strategy is given.
    """
    if recipe is not None:
        base = find_recipe(recipe) if isinstance(recipe, str) else recipe
        strategy = base.strategy if strategy is None else strategy
        options = (dict(base.params) if strategy == base.strategy else {}) | options
        n_parties = base.n_parties if n_parties is None else n_parties
        seed = base.seed if seed is UNSET else seed
        val, test = (base.val if val is UNSET else val), (base.test if test is UNSET else test)
        transforms = [_pair(t) for t in base.transforms] if transforms is None else transforms
    strategy, transforms = strategy or "dir", tuple(transforms or ())
    if strategy in TRANSFORMS.names():
        strategy, options, transforms = "homo", {}, (*transforms, (strategy, options))
    if like is not None:
        strategy, options = _as_peer(like, strategy, options)
    if ":" not in strategy and strategy not in STRATEGIES.names():
        raise UsageError(
            f"unknown strategy {strategy!r}; {did_you_mean(strategy, STRATEGIES.names() + TRANSFORMS.names())}"
        )
    if own := [name for name, _ in transforms if ":" in name]:
        raise UsageError(
            f"transform {own[0]!r} is not niidpart's own; whoever reads the split applies it, so it has to be one of {TRANSFORMS.names()}"
        )
    return complete_recipe(
        Recipe(
            strategy=STRATEGIES.cite(strategy),
            params=options,
            n_parties=_n_parties(strategy, n_parties),
            seed=0 if seed is UNSET else seed,
            transforms=tuple(Transform(name, dict(given)) for name, given in transforms),
            val=0.0 if val is UNSET else val,
            test=0.0 if test is UNSET else test,
        )
    )


def _pair(t: Transform | tuple[str, Mapping[str, Any]]) -> tuple[str, Mapping[str, Any]]:
    return (t.name, t.params) if isinstance(t, Transform) else t


def list_peers() -> dict[str, tuple[str, ...]]:
    """Each replay of a peer's code (a strategy with an option `rule`) with the strategies that it has."""
    options = {name: STRATEGIES.options(STRATEGIES.find(name)) for name in STRATEGIES.names()}
    return {
        name: typing.get_args(o["rule"].annotation) for name, o in options.items() if "rule" in o
    }


def _as_peer(like: str, strategy: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """(strategy, options) of a strategy as a peer has it."""
    if like not in list_peers():
        raise UsageError(
            f"there is no replay of {like!r}; {did_you_mean(like, list(list_peers()))}"
        )
    if strategy not in list_peers()[like]:
        raise UsageError(
            f"{like} has no strategy {strategy!r}; {did_you_mean(strategy, list(list_peers()[like]))}"
        )
    STRATEGIES.complete(
        strategy, options
    )  # an option that this rule does not have is refused, also where another of the peer's has it
    return like, options | {"rule": strategy}


def complete_recipe(recipe: Recipe) -> Recipe:
    """The recipe with every option checked and every default written out."""
    return replace(
        recipe,
        params=STRATEGIES.complete(recipe.strategy, recipe.params),
        transforms=tuple(
            Transform(t.name, TRANSFORMS.complete(t.name, t.params)) for t in recipe.transforms
        ),
    )


def _n_parties(strategy: str, asked: int | None) -> int:
    """The number asked for, else the strategy's own (annotated as a Literal, or a default), else 10."""
    function = STRATEGIES.find(strategy)
    parameters = signature(function).parameters
    if missing := [name for name in ("n_parties", "rng") if name not in parameters]:
        raise UsageError(
            f"strategy {strategy!r} has no parameter {missing[0]}; it must be a function (labels, n_parties, rng, *, options)"
        )
    parameter = parameters["n_parties"]
    fixed = typing.get_args(typing.get_type_hints(function).get("n_parties"))
    if fixed and asked is not None and asked not in fixed:
        raise UsageError(
            f"{strategy} splits among {' or '.join(map(str, fixed))} parties, {asked} were asked for"
        )
    if asked is not None:
        return asked
    return (
        int(fixed[0])
        if fixed
        else int(parameter.default)
        if parameter.default is not Parameter.empty
        else 10
    )
