"""`make`: from labels and a recipe to a split. Pure: no file, clock, environment or global generator is touched."""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .data import Data, class_ids, group_ids
from .deal import feasible
from .holdout import holdout
from .recipe import NAME, Recipe, Transform
from .registry import Function, Registry, did_you_mean
from .rng import Ints, stream
from .split import FederatedSplit
from .strategies import Owners

STRATEGIES = Registry("niidpart.strategies", "strategy", given=frozenset({"groups", "n_parties"}))
TRANSFORMS = Registry("niidpart.transforms", "transform")


def make(
    labels: ArrayLike | Data,
    strategy: str = "dir",
    *,
    n_parties: int | None = None,
    seed: int = 0,
    transforms: Sequence[tuple[str, Mapping[str, Any]]] = (),
    val: float = 0.0,
    test: float = 0.0,
    groups: ArrayLike | None = None,
    **options: Any,
) -> FederatedSplit:
    """A split of the examples behind `labels` among parties.

    labels: [N], one column of integers, booleans or strings; or a `Data`, as `niidpart.load` gives it, and then the split says which
    data it is of and where it was found. strategy: a file of `niidpart/strategies`, or `file.py:function`; `options` are its own
    (`beta`, `k`, `min_size`, ...). n_parties: 10 unless the strategy has its own number. transforms: (name, options) in the order in
    which they are applied, such as ("noise", {"sigma": 0.1}). val, test: fractions of each party's examples that become its own
    validation and test part. groups: [N] integers, for strategies that deal by group. ValueError for anything that cannot be done,
    with the numbers.
    """
    data = labels if isinstance(labels, Data) else Data(*class_ids(labels))
    if groups is not None:
        data = replace(data, groups=group_ids(groups, len(data.labels)))
    return derive(data, compose(strategy, n_parties=n_parties, seed=seed, transforms=transforms, val=val, test=test, **options))


def compose(
    strategy: str,
    *,
    n_parties: int | None = None,
    seed: int = 0,
    transforms: Sequence[tuple[str, Mapping[str, Any]]] = (),
    val: float = 0.0,
    test: float = 0.0,
    **options: Any,
) -> Recipe:
    """The complete Recipe: every option checked, every default written out. A transform's name as strategy is `homo` with that transform."""
    if strategy in TRANSFORMS.names():
        return compose("homo", n_parties=n_parties, seed=seed, transforms=[*transforms, (strategy, options)], val=val, test=test)
    if ":" not in strategy and strategy not in STRATEGIES.names():
        raise ValueError(f"unknown strategy {strategy!r}; {did_you_mean(strategy, STRATEGIES.names() + TRANSFORMS.names())}")
    if own := [name for name, _ in transforms if ":" in name]:
        raise ValueError(
            f"transform {own[0]!r} is not niidpart's own; whoever reads the split applies it, so it has to be one of {TRANSFORMS.names()}"
        )
    return completed(
        Recipe(
            strategy=strategy,
            params=options,
            n_parties=_n_parties(strategy, n_parties),
            seed=seed,
            transforms=tuple(Transform(name, dict(given)) for name, given in transforms),
            val=val,
            test=test,
        )
    )


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
    options = dict(recipe.params) | _groups(function, recipe.strategy, data)
    result = function(labels, recipe.n_parties, stream(recipe.seed, "strategy", recipe.strategy, given=given), **options)
    owner, draws = _checked(result, recipe, len(labels))
    parts = holdout(owner, labels, recipe.n_parties, n_classes, recipe.val, recipe.test, stream(recipe.seed, "holdout"))
    columns = {k: v for name, t in named_transforms(recipe) for k, v in columns_of(recipe, name, t).items()}
    return FederatedSplit(recipe=recipe, source=data.source, **parts, draws=draws, columns=columns, root=data.root)


def _n_parties(strategy: str, asked: int | None) -> int:
    """The number asked for, else the strategy's own (annotated as a Literal, or a default), else 10."""
    function = STRATEGIES.find(strategy)
    parameter = signature(function).parameters.get("n_parties")
    if parameter is None:
        raise ValueError(f"strategy {strategy!r} has no parameter n_parties; it must be a function (labels, n_parties, rng, *, options)")
    fixed = typing.get_args(typing.get_type_hints(function).get("n_parties"))
    if fixed and asked is not None and asked not in fixed:
        raise ValueError(f"{strategy} splits among {' or '.join(map(str, fixed))} parties, {asked} were asked for")
    if asked is not None:
        return asked
    return int(fixed[0]) if fixed else int(parameter.default) if parameter.default is not Parameter.empty else 10


def _groups(function: Function, name: str, data: Data) -> dict[str, Ints]:
    if "groups" not in signature(function).parameters:
        return {}
    if data.groups is None:
        raise ValueError(f"strategy {name!r} deals by group, and this data set has none; hand them over (groups=) or take a data set that has them")
    return {"groups": data.groups}


def _checked(result: Any, recipe: Recipe, n: int) -> Owners:
    """Refuses what a strategy, which may be a user's own, must not return."""
    who = f"strategy {recipe.strategy!r}"
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], np.ndarray) and isinstance(result[1], dict)):
        raise ValueError(f"{who} returned {type(result).__name__}; niidpart.strategies.Owners(owner [N], draws) is needed")
    owner, draws = result
    if owner.shape != (n,) or owner.dtype.kind != "i" or owner.min() < -1 or owner.max() >= recipe.n_parties:
        got = f"{owner.dtype}{list(owner.shape)}" + (f" in {owner.min()}..{owner.max()}" if owner.size else "")
        raise ValueError(f"{who} returned owners {got}; integers -1..{recipe.n_parties - 1} [{n}] are needed")
    if owner.max() < 0:
        raise ValueError(f"{who} gave no example to anybody")
    for name, value in draws.items():
        if not NAME.match(name) or not isinstance(value, np.ndarray) or value.dtype.kind not in "iuf" or value.ndim not in (1, 2):
            raise ValueError(
                f"{who} returned the draw {name!r}; a name of letters, digits and '_', with an array [n] or [n, m] of numbers, is needed"
            )
    return Owners(owner, draws)


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
