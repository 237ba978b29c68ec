"""Features as parties see them, for the pictures that show some."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..data import Data
from ..features.transforming import transform
from ..splits.split import FederatedSplit


def view_features(split: FederatedSplit, data: Data, party: int, rows: Ints) -> NDArray[np.float32]:
    """Features [n, ...] float32 of `rows` as `party` sees them, uint8 divided by 255. Of noise that training draws anew: one draw."""
    assert data.features is not None  # draw() looked
    x = data.features(rows)
    fixed = tuple(
        replace(t, params=t.params | {"fresh": False} if "fresh" in t.params else t.params)
        for t in split.recipe.transforms
    )
    x = transform(replace(split, recipe=replace(split.recipe, transforms=fixed)), x, party, rows)
    return x.astype(np.float32) / np.float32(255) if x.dtype == np.uint8 else x.astype(np.float32)


def read_features(data: Data, rows: Ints) -> NDArray[np.float32]:
    """Features [n, ...] float32 of `rows` as they are in the data set, uint8 divided by 255."""
    assert data.features is not None
    x = data.features(rows)
    return x.astype(np.float32) / np.float32(255) if x.dtype == np.uint8 else x.astype(np.float32)


def is_fresh(split: FederatedSplit) -> bool:
    """Whether some transform is drawn anew in training."""
    return any(t.params.get("fresh") for t in split.recipe.transforms)


def sample_rows(split: FederatedSplit, ids: Ints, sample: int) -> tuple[Ints, Ints]:
    """(party [n], row [n]): about `sample` training examples, as many of each party, evenly along its rows."""
    each = max(sample // len(ids), 1)
    rows = []
    for p in ids:
        mine = split.train.party(int(p))
        rows.append(
            mine[
                np.linspace(0, len(mine) - 1, min(each, len(mine))).round().astype(np.int64)
            ].astype(np.int64)
        )
    return np.repeat(ids, [len(r) for r in rows]), np.concatenate(rows)
