"""The skew that a split file states, as a `Skew`."""

from dataclasses import fields
from typing import Any

import numpy as np

from ..heterogeneity import Measure, Skew
from ..splits.recipe import JSON
from .stored import Array


def parse_skew(table: JSON, map_beta: Array) -> Skew | None:
    """Return the skew in /skew/table and /skew/map_beta.

    None where its fields are not those that this version knows: another version may have others,
    and an untrusted file may hold anything.
    """
    beta, measures, n_empty = table.get("map_beta"), table.get("measures"), table.get("n_empty")
    if not isinstance(beta, dict) or not isinstance(measures, list) or type(n_empty) is not int:
        return None
    known = all(map(_is_measure, measures))
    if not known or not _is_number(beta.get("overall")) or not np.isfinite(map_beta).all():
        return None
    return Skew.from_json(table, map_beta)


def _is_measure(stated: Any) -> bool:
    if not isinstance(stated, dict) or set(stated) != {field.name for field in fields(Measure)}:
        return False
    texts, numbers = ("name", "form", "average"), ("raw", "value", "corrected", "iid")
    return (
        all(isinstance(stated[key], str) for key in texts)
        and all(_is_number(stated[key]) for key in numbers)
        and all(stated[key] is None or _is_number(stated[key]) for key in ("low", "high"))
        and all(type(stated[key]) is int for key in ("version", "n"))
        and type(stated["sampled"]) is bool
    )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)
