"""Values on axes as places: their order, how many there are, and where a point lies."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..common import is_number
from ..evidence.records import RunRecord


def sort_places(values: Sequence[Any]) -> list[Any]:
    """Return the values of an axis: numbers by their size, others as they come."""
    by_text = {repr(value): value for value in values}
    distinct = list(by_text.values())
    if all(map(is_number, distinct)):
        distinct.sort()
    return distinct


def count_places(records: Sequence[RunRecord], axes: Sequence[str]) -> int:
    """Return how many choices of values on some axes the runs have."""
    places = set()
    for record in records:
        values = [record.where.get(axis) for axis in axes]
        places.add(repr(values))
    return len(places)


def find_point(where: Mapping[str, Any], points: Sequence[str]) -> Any:
    """Return the value on the axis of the points; of several axes a tuple, of none None."""
    if len(points) == 1:
        return where[points[0]]
    return tuple(where[axis] for axis in points) or None
