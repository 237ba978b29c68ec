"""The skew that a split file states, as a `Skew`."""

from typing import Any, get_args

import numpy as np

from ..arithmetic.words import Array
from ..heterogeneity import MEASURES, Reading, Skew
from ..heterogeneity.concentration import VERSION as MAP_BETA_VERSION
from ..renamed import warn_renamed
from ..splits.recipe import JSON
from ..splits.split import FederatedSplit, find_known_skew

_NUMBER = (int, float)
_KINDS: dict[str, tuple[type, ...]] = {  # of the fields of a Measure
    "name": (str,),
    "form": (str,),
    "version": (int,),
    "raw": _NUMBER,
    "value": _NUMBER,
    "corrected": _NUMBER,
    "low": (int, float, type(None)),
    "high": (int, float, type(None)),
    "iid": _NUMBER,
    "average": (str,),
    "n": (int,),
    "sampled": (bool,),
}


class StatedSkew(Skew):
    """The skew that a file states, which can also be read as the table that it was before."""

    def __getitem__(self, name: str) -> Any:
        warn_renamed(f"opened.skew[{name!r}]", f"opened.skew.to_json()[{name!r}]")
        return self.to_json()[name]


def find_stored_skew(split: FederatedSplit) -> Skew | None:
    """Return the skew that a split took from its file, where that is believed; else None."""
    known = find_known_skew(split)
    return known if isinstance(known, StatedSkew) else None


def parse_skew(table: JSON, map_beta: Array) -> Skew | None:
    """Return the skew in /skew/table and /skew/map_beta.

    None where its fields or versions are not those that this version knows: another version may
    have others, and an untrusted file may hold anything.
    """
    beta, measures = table.get("map_beta"), table.get("measures")
    has_reading = "reading" in table and table["reading"] in (*get_args(Reading), None)
    if not has_reading or not _is_beta(beta):
        return None
    if not isinstance(measures, list) or not all(map(_is_measure, measures)):
        return None
    if type(table.get("n_empty")) is not int or not np.isfinite(map_beta).all():
        return None
    return StatedSkew.from_json(table, map_beta)


def _is_beta(stated: Any) -> bool:
    if not isinstance(stated, dict) or stated.get("version") != MAP_BETA_VERSION:
        return False
    return all(type(stated.get(key)) in _NUMBER for key in ("overall", "low", "high"))


def _is_measure(stated: Any) -> bool:
    if not isinstance(stated, dict) or set(stated) != set(_KINDS):
        return False
    if not all(type(stated[key]) in kinds for key, kinds in _KINDS.items()):
        return False
    if stated["name"] not in MEASURES.names():
        return True  # of a later version, which nothing here can contradict
    record = MEASURES.record(stated["name"])
    return bool(stated["version"] == record.version)
