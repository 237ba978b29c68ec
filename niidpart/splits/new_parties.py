"""Which parties a split holds out: those that never train."""

import numpy as np

from .view import SplitView

_TRANSFORM = "new-parties"


def list_new_parties(split: SplitView) -> tuple[int, ...]:
    """Return the numbers of the parties that never train, ascending; () where it names none."""
    is_new = np.zeros(split.n_parties, bool)
    for name, step in split.recipe.named_transforms:
        if step.name == _TRANSFORM:
            is_new |= split.columns[f"{name}_new"] > 0
    return tuple(np.flatnonzero(is_new).tolist())
