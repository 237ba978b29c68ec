"""Transforms of a recipe: the columns that they store, and features as a party sees them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints, stream
from ..errors import UsageError
from ..splits.recipe import Recipe, Transform
from ..splits.view import SplitView
from ..transforms import TRANSFORMS, FeatureTransform


def draw_columns(recipe: Recipe, name: str, transform: Transform) -> dict[str, NDArray[Any]]:
    """Return what a transform draws, one value a party, by `<name>_<column>`.

    name: as of `Recipe.named_transforms`, so that each transform of a recipe has its own stream.
    """
    draw = TRANSFORMS.find(transform.name)
    rng = stream(recipe.seed, "transform", name)
    values = draw(recipe.n_parties, rng, **transform.params)
    return {f"{name}_{key}": value for key, value in values.items()}


def transform(split: SplitView, x: NDArray[Any], party: int, rows: Ints) -> NDArray[Any]:
    """Return features as a party sees them: with the split's fixed transforms, in their order.

    Parameters
    ----------
    split
        The split.
    x
        Features [n, ...] of `rows`, as the data set has them.
    party
        The number of the party.
    rows
        [n] rows of the data set; the noise of an example depends on its row.

    Returns
    -------
    array
        [n, ...] float32; uint8 is divided by 255 first. Without transforms of features `x` itself.

    Examples
    --------
    >>> import niidpart
    >>> data = niidpart.load("digits")
    >>> noise = ("noise", {"sigma": 0.1})
    >>> split = niidpart.make(data, "homo", n_parties=3, transforms=[noise])
    >>> rows = split.train.party(2)
    >>> niidpart.transform(split, data.features(rows), 2, rows).dtype
    dtype('float32')
    """
    steps = list_feature_steps(split.recipe)
    if not steps:
        return x
    is_bytes = x.dtype == np.uint8
    x = x.astype(np.float32)
    if is_bytes:
        x = x / np.float32(255)
    values = split.party_values(party)  # of an open file: each is read when it is asked for
    for name, record, options in steps:
        prefix = f"{name}_"
        own = [key for key in values if key.startswith(prefix)]
        column = {key.removeprefix(prefix): values[key] for key in own}
        x = record.apply(x, rows, column, options)
    return x


def list_feature_steps(recipe: Recipe) -> list[tuple[str, FeatureTransform, Mapping[str, Any]]]:
    """Return (prefix, record, options) of each transform of features, in order."""
    steps: list[tuple[str, FeatureTransform, Mapping[str, Any]]] = []
    for name, step in recipe.named_transforms:
        record = TRANSFORMS.record(step.name)
        if isinstance(record, FeatureTransform):
            steps.append((name, record, step.params))
    return steps


def to_native(x: NDArray[Any]) -> NDArray[Any]:
    """Return features [n, ...] in this machine's order of bytes, which is all that Arrow takes.

    Raises UsageError where an example has no numbers.
    """
    if 0 in x.shape[1:]:
        shape = ", ".join(map(str, x.shape[1:]))
        raise UsageError(
            f"the features have shape [n, {shape}], so no example holds a number; go on with the "
            "labels alone"
        )
    return x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))
