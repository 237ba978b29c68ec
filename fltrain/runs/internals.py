"""What an algorithm says of its own state, as metrics: `--internals`."""

import math
from typing import Any

import torch
from torch import Tensor

from niidpart.errors import UsageError

from ..engine.jobs import Cell
from ..interface import State

INTERNAL = "internal_"  # begins the names of what an algorithm says


def describe_internals(cell: Cell, state: State) -> dict[str, Any]:
    """Return what the algorithm says of a state, numbers and lists of all parties of the split.

    {} where it says nothing, or nobody asked. UsageError for what is neither a number nor one a
    party.
    """
    algorithm = cell.algorithm
    if algorithm.describe is None or not cell.settings.internals:
        return {}
    said = algorithm.describe(state, algorithm.hyper)
    return {f"{INTERNAL}{name}": _to_metric(cell, name, value) for name, value in said.items()}


def _to_metric(cell: Cell, name: str, value: Tensor) -> Any:
    """Return a number, or a list with a place for each party of the split."""
    numbers = value.int() if value.dtype is torch.bool else value
    if value.dim() == 0:
        return _to_finite(numbers.item())
    if value.shape != (cell.data.n_parties,) or cell.algorithm.pooled:
        raise UsageError(
            f"{cell.algorithm.name} says {name} with the shape {list(value.shape)}; it must be a "
            f"number, or one for each of the {cell.data.n_parties} parties that train"
        )
    return cell.data.spread([_to_finite(number) for number in numbers.tolist()])


def _to_finite(number: float) -> float | None:
    """Return a number, None for one that JSON does not have."""
    return number if math.isfinite(number) else None
