"""Values on axes in words: what rows, columns and runs are called."""

from collections.abc import Mapping
from typing import Any

from .records import RUN_AXIS, SETTING_AXIS, SPLIT_AXIS

_NAMES = ("algorithm", SPLIT_AXIS, RUN_AXIS, SETTING_AXIS)  # axes whose values say what they are


def describe_place(where: Mapping[str, Any]) -> str:
    """Return values on axes in words: names as they are, other values with their axes."""
    words = []
    for axis, value in where.items():
        if value is None:
            continue
        text = write_place(value)
        words.append(text if axis in _NAMES else f"{axis}={text}")
    return " ".join(words) or "all"


def name_column(where: Mapping[str, Any]) -> str:
    """Return a column in words; "" for the only one."""
    return describe_place(where) if where else ""


def write_place(value: Any) -> str:
    """Return a value on an axis as text."""
    if value is None:
        return "-"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
