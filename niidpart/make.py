"""`make`: from labels and a recipe to a split. Pure: no file, clock, environment or global generator is touched."""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .data import Data, class_ids, group_column
from .deal import feasible
from .parts import parts_of, understood
from .recipe import Recipe, Transform
from .recipes import find as find_recipe
from .registry import Function, Registry, did_you_mean
from .rng import Ints, stream
from .split import FederatedSplit

STRATEGIES = Registry("niidpart.strategies", "strategy", given=frozenset({"groups", "seed", "n_parties", "rng"}))
TRANSFORMS = Registry("niidpart.transforms", "transform")
UNSAID: Any = ...  # not given; None is refused, since elsewhere seed=None means another split each time


def make(
    labels: ArrayLike | Data,
    strategy: str | None = None,
    *,
    recipe: str | Recipe | None = None,
    like: str | None = None,
    n_parties: int | None = None,
    seed: int = UNSAID,
    transforms: Sequence[tuple[str, Mapping[str, Any]]] | None = None,
    val: float = UNSAID,
    test: float = UNSAID,
    groups: ArrayLike | None = None,
    **options: Any,
) -> FederatedSplit:
    """A split of the examples behind `labels` among parties.

    labels: [N], one column of integers, booleans or strings; or a `Data`, as `niidpart.load` gives it, and then the split says which
    data it is of and where it was found. strategy: a file of `niidpart/strategies` (`dir` unless told otherwise), or `file.py:function`;
    `options` are its own (`beta`, `k`, `min_size`, ...). recipe: a setting of a paper by name (`niid/mnist-dir0.5`), or a Recipe; whatever is
    given beside it takes the place of what it says. like: the strategy as a peer's published code has it (`niidbench`). n_parties: 10 unless
    the strategy has its own number. seed: 0. transforms: (name, options) in the order in which they are applied, such as
    ("noise", {"sigma": 0.1}). val, test: fractions of each party's examples that become its own validation and test part. groups: [N]
    integers, for strategies that deal by group. ValueError for anything that cannot be done, with the numbers.
    """
    data = labels if isinstance(labels, Data) else Data(*class_ids(labels))
    if groups is not None:
        ids, names = group_column(groups, len(data.labels))
        data = replace(data, groups=ids, group_names=names)
    asked = compose(strategy, recipe=recipe, like=like, n_parties=n_parties, seed=seed, transforms=transforms, val=val, test=test, **options)
    return derive(data, asked)


def compose(
    strategy: str | None = None,
    *,
    recipe: str | Recipe | None = None,
    like: str | None = None,
    n_parties: int | None = None,
    seed: int = UNSAID,
    transforms: Sequence[tuple[str, Mapping[str, Any]]] | None = None,
    val: float = UNSAID,
    test: float = UNSAID,
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
        seed = base.seed if seed is UNSAID else seed
        val, test = (base.val if val is UNSAID else val), (base.test if test is UNSAID else test)
        transforms = [_pair(t) for t in base.transforms] if transforms is None else transforms
    strategy, transforms = strategy or "dir", tuple(transforms or ())
    if strategy in TRANSFORMS.names():
        strategy, options, transforms = "homo", {}, (*transforms, (strategy, options))
    if like is not None:
        strategy, options = _as_peer(like, strategy, options)
    if ":" not in strategy and strategy not in STRATEGIES.names():
        raise ValueError(f"unknown strategy {strategy!r}; {did_you_mean(strategy, STRATEGIES.names() + TRANSFORMS.names())}")
    if own := [name for name, _ in transforms if ":" in name]:
        raise ValueError(
            f"transform {own[0]!r} is not niidpart's own; whoever reads the split applies it, so it has to be one of {TRANSFORMS.names()}"
        )
    return completed(
        Recipe(
            strategy=STRATEGIES.cited(strategy),
            params=options,
            n_parties=_n_parties(strategy, n_parties),
            seed=0 if seed is UNSAID else seed,
            transforms=tuple(Transform(name, dict(given)) for name, given in transforms),
            val=0.0 if val is UNSAID else val,
            test=0.0 if test is UNSAID else test,
        )
    )


def _pair(t: Transform | tuple[str, Mapping[str, Any]]) -> tuple[str, Mapping[str, Any]]:
    return (t.name, t.params) if isinstance(t, Transform) else t


def peers() -> dict[str, tuple[str, ...]]:
    """Each replay of a peer's code (a strategy with an option `rule`) with the strategies that it has."""
    options = {name: STRATEGIES.options(STRATEGIES.find(name)) for name in STRATEGIES.names()}
    return {name: typing.get_args(o["rule"].annotation) for name, o in options.items() if "rule" in o}


def _as_peer(like: str, strategy: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """(strategy, options) of a strategy as a peer has it."""
    if like not in peers():
        raise ValueError(f"there is no replay of {like!r}; {did_you_mean(like, list(peers()))}")
    if strategy not in peers()[like]:
        raise ValueError(f"{like} has no strategy {strategy!r}; {did_you_mean(strategy, list(peers()[like]))}")
    STRATEGIES.complete(strategy, options)  # an option that this rule does not have is refused, also where another of the peer's has it
    return like, options | {"rule": strategy}


def completed(recipe: Recipe) -> Recipe:
    """The recipe with every option checked and every default written out."""
    return replace(
        recipe,
        params=STRATEGIES.complete(recipe.strategy, recipe.params),
        transforms=tuple(Transform(t.name, TRANSFORMS.complete(t.name, t.params)) for t in recipe.transforms),
    )


def derive(data: Data, recipe: Recipe, *, given: Mapping[str, NDArray[Any]] | None = None) -> FederatedSplit:
    """The split that a complete recipe gives. given: stored draws, used instead of drawing again (`niidpart verify`)."""
    labels, n_classes = data.labels, len(data.class_names)
    if recipe.n_parties > len(labels):
        raise ValueError(f"{recipe.n_parties} parties cannot share {len(labels)} examples; use at most {len(labels)} parties")
    feasible(len(labels), recipe.n_parties, recipe.params.get("min_size", 0))
    function = STRATEGIES.find(recipe.strategy)
    rng = stream(recipe.seed, "strategy", recipe.strategy, given=given)
    result = understood(function(labels, n_parties=recipe.n_parties, rng=rng, **recipe.params, **_asked(function, recipe, data)), recipe)
    parts = parts_of(result, recipe, labels, n_classes)
    columns = dict(result.columns)
    for name, t in named_transforms(recipe):
        columns |= columns_of(recipe, name, t)
    return FederatedSplit(recipe=recipe, source=data.source, **parts, draws=result.draws, columns=columns, root=data.root)


def _n_parties(strategy: str, asked: int | None) -> int:
    """The number asked for, else the strategy's own (annotated as a Literal, or a default), else 10."""
    function = STRATEGIES.find(strategy)
    parameters = signature(function).parameters
    if missing := [name for name in ("n_parties", "rng") if name not in parameters]:
        raise ValueError(f"strategy {strategy!r} has no parameter {missing[0]}; it must be a function (labels, n_parties, rng, *, options)")
    parameter = parameters["n_parties"]
    fixed = typing.get_args(typing.get_type_hints(function).get("n_parties"))
    if fixed and asked is not None and asked not in fixed:
        raise ValueError(f"{strategy} splits among {' or '.join(map(str, fixed))} parties, {asked} were asked for")
    if asked is not None:
        return asked
    return int(fixed[0]) if fixed else int(parameter.default) if parameter.default is not Parameter.empty else 10


def _asked(function: Function, recipe: Recipe, data: Data) -> dict[str, Any]:
    """What the strategy names among its parameters besides its options: the groups of the data set, the seed of the recipe."""
    wanted = signature(function).parameters
    if "groups" in wanted and data.groups is None:
        raise ValueError(
            f"strategy {recipe.strategy!r} deals by group, and this data set has none; hand them over (groups=) or take a data set that has them"
        )
    return {name: value for name, value in (("groups", data.groups), ("seed", recipe.seed)) if name in wanted}


def columns_of(recipe: Recipe, name: str, transform: Transform) -> dict[str, NDArray[Any]]:
    """One value a party: `<name>_<column>`, where name is the transform's, or `<transform>2` where it stands a second time."""
    values = TRANSFORMS.find(transform.name)(recipe.n_parties, stream(recipe.seed, "transform", name), **transform.params)
    return {f"{name}_{key}": value for key, value in values.items()}


def named_transforms(recipe: Recipe) -> list[tuple[str, Transform]]:
    """Each transform with the prefix of its columns: `noise`, and `noise2` where it stands a second time."""
    seen: dict[str, int] = {}
    out = []
    for t in recipe.transforms:
        seen[t.name] = seen.get(t.name, 0) + 1
        out.append((t.name if seen[t.name] == 1 else f"{t.name}{seen[t.name]}", t))
    return out


def transform(split: FederatedSplit, x: NDArray[Any], party: int, rows: Ints) -> NDArray[Any]:
    """Features [n, ...] of `rows` as `party` sees them: floats in [0, 1] (uint8 divided by 255) with the split's fixed transforms, in order.

    Without transforms `x` comes back as it is.
    """
    if not split.recipe.transforms:
        return x
    x = x.astype(np.float32) / np.float32(255) if x.dtype == np.uint8 else x.astype(np.float32)
    for name, t in named_transforms(split.recipe):
        column = {k.removeprefix(f"{name}_"): v[party] for k, v in split.columns.items() if k.startswith(f"{name}_")}
        x = TRANSFORMS.module(t.name).apply(x, rows, column, t.params)
    return x
