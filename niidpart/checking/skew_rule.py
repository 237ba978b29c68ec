"""Rule 65 of docs/format.md: the skew that a file states follows from its counts."""

import math
from typing import Any

import numpy as np

from ..splitfile.faults import Fault
from ..splitfile.rules import StoredSkew
from ..splits.recipe import JSON
from ..splits.split import FederatedSplit

# Relative: logarithms and digamma differ in their last digits from one library to the next, and
# sums of them follow.
_CLOSE = 1e-6
# Absolute: where such a digit decides a draw of the bootstrap or of the IID deals, one count of
# many moves.
_DRAWN = 1e-3
_DRAWN_NUMBERS = ("iid", "corrected", "low", "high")


def check_skew(split: FederatedSplit, stored: StoredSkew | None) -> list[Fault]:
    """Return the faults of rule 65.

    Measures of another version are passed over: they may be defined otherwise.
    """
    if stored is None:
        return []
    wrong = _find_wrong_beta(split, stored)
    right = split.skew.to_json()
    if stored.table.get("n_empty") != right["n_empty"]:
        wrong.append("n_empty")
    wrong += _find_wrong_measures(stored.table["measures"], right["measures"])
    if not wrong:
        return []
    return [Fault(65, f"/skew does not follow from the counts: {', '.join(wrong[:8])}")]


def _find_wrong_beta(split: FederatedSplit, stored: StoredSkew) -> list[str]:
    stated = stored.table["map_beta"]
    right = split.skew.to_json()["map_beta"]
    if stated["version"] != right["version"]:
        return []
    wrong = []
    if stored.table.get("reading") != split.skew.reading:
        wrong.append("reading")
    if not np.allclose(stored.map_beta, split.skew.map_beta, rtol=_CLOSE, atol=0):
        wrong.append("map_beta of each party")
    return wrong + _find_wrong_entries("map_beta", stated, right)


def _find_wrong_measures(stated: list[JSON], right: list[JSON]) -> list[str]:
    stated_of, right_of = _index_by_name(stated), _index_by_name(right)
    wrong = []
    if len(stated_of) < len(stated):
        wrong.append("a measure that is stated twice")
    for key, measure in right_of.items():
        other = stated_of.get(key)
        if other is not None and other["version"] == measure["version"]:
            name = " ".join(filter(None, key))
            wrong += _find_wrong_entries(name, other, measure)
    return wrong


def _index_by_name(measures: list[JSON]) -> dict[tuple[str, str], JSON]:
    return {(measure["name"], measure["form"]): measure for measure in measures}


def _find_wrong_entries(name: str, stated: JSON, right: JSON) -> list[str]:
    """Return the names of numbers and words that differ."""
    wrong = []
    for key, value in right.items():
        if not _is_same(key, stated.get(key), value):
            wrong.append(f"{name}.{key}")
    return wrong


def _is_same(key: str, stated: Any, right: Any) -> bool:
    if not isinstance(right, float):
        return bool(stated == right)
    if type(stated) not in (int, float):
        return False
    absolute = _DRAWN if key in _DRAWN_NUMBERS else 1e-12
    return math.isclose(stated, right, rel_tol=_CLOSE, abs_tol=absolute)
