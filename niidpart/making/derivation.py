"""`make`: from labels and a recipe to a split. Pure: no file, clock, environment or global generator is touched."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arithmetic.deal import require_feasible
from ..arithmetic.rng import stream
from ..data import Data, Features, number_classes, number_groups
from ..errors import UsageError
from ..features.transforming import draw_columns, name_transforms, transform
from ..registry import UNSET, Function
from ..splits.recipe import Recipe
from ..splits.split import FederatedSplit
from ..strategies import STRATEGIES
from .completion import compose
from .owners import build_parts, check_strategy_result


def make(
    labels: ArrayLike | Data,
    strategy: str | None = None,
    *,
    recipe: str | Recipe | None = None,
    like: str | None = None,
    n_parties: int | None = None,
    seed: int = UNSET,
    transforms: Sequence[tuple[str, Mapping[str, Any]]] | None = None,
    val: float = UNSET,
    test: float = UNSET,
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
    data = labels if isinstance(labels, Data) else Data(*number_classes(labels))
    if groups is not None:
        ids, names = number_groups(groups, len(data.labels))
        data = replace(data, groups=ids, group_names=names)
    asked = compose(
        strategy,
        recipe=recipe,
        like=like,
        n_parties=n_parties,
        seed=seed,
        transforms=transforms,
        val=val,
        test=test,
        **options,
    )
    split = derive(data, asked)
    if data.features is not None:
        _applicable(split, data.features)
    return split


def derive(
    data: Data, recipe: Recipe, *, given: Mapping[str, NDArray[Any]] | None = None
) -> FederatedSplit:
    """The split that a complete recipe gives. given: stored draws, used instead of drawing again (`niidpart verify`)."""
    labels, n_classes = data.labels, len(data.class_names)
    if recipe.n_parties > len(labels):
        raise UsageError(
            f"{recipe.n_parties} parties cannot share {len(labels)} examples; use at most {len(labels)} parties"
        )
    require_feasible(len(labels), recipe.n_parties, recipe.params.get("min_size", 0))
    function = STRATEGIES.find(recipe.strategy)
    rng = stream(recipe.seed, "strategy", recipe.strategy, given=given)
    try:
        result = function(
            labels,
            n_parties=recipe.n_parties,
            rng=rng,
            **recipe.params,
            **_asked(function, recipe, data),
        )
    except Exception as error:
        if ":" in recipe.strategy:  # a user's own: say whose fault it is
            error.add_note(f"raised by the strategy {recipe.strategy}")
        raise
    result = check_strategy_result(result, recipe)
    parts = build_parts(result, recipe, labels, n_classes)
    columns = dict(result.columns)
    for name, t in name_transforms(recipe):
        columns |= draw_columns(recipe, name, t)
    return FederatedSplit(
        recipe=recipe,
        source=data.source,
        **parts,
        draws=result.draws,
        columns=columns,
        root=data.root,
    )


def _asked(function: Function, recipe: Recipe, data: Data) -> dict[str, Any]:
    """What the strategy names among its parameters besides its options: the groups of the data set, the seed of the recipe."""
    wanted = signature(function).parameters
    if "groups" in wanted and data.groups is None:
        raise UsageError(
            f"strategy {recipe.strategy!r} deals by group, and this data set has none; hand them over (groups=) or take a data set that has them"
        )
    return {
        name: value
        for name, value in (("groups", data.groups), ("seed", recipe.seed))
        if name in wanted
    }


def _applicable(split: FederatedSplit, features: Features) -> None:
    """Refuses transforms that the features cannot have, such as places in a table, before they are trained on."""
    if split.recipe.transforms:
        party = int(np.argmax(split.train.sizes > 0))
        row = split.train.party(party)[:1].astype(np.int64)
        transform(split, features(row), party, row)
