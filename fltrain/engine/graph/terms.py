"""The affine terms of all jobs of a stack, found once a round."""

from typing import Any

import torch
from torch import Tensor

from ...directions.affine import Affine, AffineDirection
from ...interface import Local
from ..stacked.stack import Stack
from .weights import WeightRows


def give_no_terms(local: Local) -> Affine:
    """Return no terms: the plain gradient's."""
    return Affine()


def find_terms(stack: Stack, rows: WeightRows) -> Affine | None:
    """Return the terms of a stack's direction, in rows; None where it declares none.

    They are constants of the local training, of what `begin` gave.
    """
    direction = stack.algorithm.direction
    if not isinstance(direction, AffineDirection):
        return None
    # `vmap` takes tensors back, so that plain numbers, which are one for all jobs, are noted here
    plain: dict[str, Any] = {}

    def give_terms(local: Local) -> dict[str, Any]:
        varied: dict[str, Any] = {}
        terms = direction.terms(local)
        for name, value in terms._asdict().items():
            is_empty = isinstance(value, dict) and not value
            is_varied = isinstance(value, dict | Tensor) and not is_empty
            into = varied if is_varied else plain
            into[name] = value
        return varied

    give_all = torch.func.vmap(give_terms, in_dims=(stack.dims,))
    found = plain | give_all(stack.local)
    return rows.lay_terms(Affine(**found))


def take_first(value: Any, n: int) -> Any:
    """Return what is the first n jobs' of a tree of rows [J, D], columns [J, 1] and plain numbers.

    A row [D] is one for all jobs.
    """
    if isinstance(value, dict):
        return {name: take_first(part, n) for name, part in value.items()}
    if isinstance(value, Tensor) and value.dim() > 1:
        return value[:n]
    return value
