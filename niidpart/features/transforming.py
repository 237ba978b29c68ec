"""Transforms of a recipe: the columns that they store, and features as a party sees them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints, stream
from ..splits.recipe import Recipe, Transform
from ..splits.view import SplitView
from ..transforms import TRANSFORMS


def draw_columns(recipe: Recipe, name: str, transform: Transform) -> dict[str, NDArray[Any]]:
    """One value a party: `<name>_<column>`, where name is the transform's, or `<transform>2` where it stands a second time."""
    values = TRANSFORMS.find(transform.name)(
        recipe.n_parties, stream(recipe.seed, "transform", name), **transform.params
    )
    return {f"{name}_{key}": value for key, value in values.items()}


def name_transforms(recipe: Recipe) -> list[tuple[str, Transform]]:
    """Each transform with the prefix of its columns: `noise`, and `noise2` where it stands a second time."""
    seen: dict[str, int] = {}
    out = []
    for t in recipe.transforms:
        seen[t.name] = seen.get(t.name, 0) + 1
        out.append((t.name if seen[t.name] == 1 else f"{t.name}{seen[t.name]}", t))
    return out


def transform(split: SplitView, x: NDArray[Any], party: int, rows: Ints) -> NDArray[Any]:
    """Features [n, ...] of `rows` as `party` sees them: floats in [0, 1] (uint8 divided by 255) with the split's fixed transforms, in order.

    Without transforms `x` comes back as it is.
    """
    if not split.recipe.transforms:
        return x
    x = x.astype(np.float32) / np.float32(255) if x.dtype == np.uint8 else x.astype(np.float32)
    values = split.party_values(party)  # of an open file: each is read when it is asked for
    for name, t in name_transforms(split.recipe):
        prefix = f"{name}_"
        own = [key for key in values if key.startswith(prefix)]
        column = {key.removeprefix(prefix): values[key] for key in own}
        x = TRANSFORMS.module(t.name).apply(x, rows, column, t.params)
    return x
