"""Some cells of a plan: those with certain values on its axes. Needs no torch."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from niidpart.errors import UsageError
from niidpart.registry import did_you_mean

from .expansion import AskedCell


def choose_cells(
    cells: Sequence[AskedCell], only: Mapping[str, Sequence[str]]
) -> Sequence[AskedCell]:
    """Return the cells that have one of the values on each axis, in their order.

    Values are compared as they are written. UsageError for an axis or a value that there is not.
    """
    for axis, wanted in only.items():
        known = list_axes(cells)
        if axis not in known:
            raise UsageError(f"there is no axis {axis!r}; {did_you_mean(axis, known)}")
        values = _list_values(cells, axis)
        unknown = [value for value in wanted if value not in values]
        if unknown:
            near = did_you_mean(unknown[0], values)
            raise UsageError(f"no cell has {axis} {unknown[0]!r}; {near}")
        cells = [cell for cell in cells if str(cell.where.get(axis)) in wanted]
        if not cells:
            raise UsageError(f"no cell has all of it: {axis} leaves none")
    return cells


def count_cells(cells: Iterable[AskedCell]) -> int:
    """Return how many different cells there are: groups share some."""
    return len({_write_asked(cell) for cell in cells})


def list_axes(cells: Iterable[AskedCell]) -> list[str]:
    """Return the axes on which cells have values."""
    axes: dict[str, None] = {}
    for cell in cells:
        axes |= dict.fromkeys(cell.where)
    return list(axes)


def _list_values(cells: Sequence[AskedCell], axis: str) -> list[str]:
    """Return the values of cells on an axis, as they are written."""
    values = [cell.where[axis] for cell in cells if axis in cell.where]
    return list(dict.fromkeys(map(str, values)))


def _write_asked(cell: AskedCell) -> str:
    asked: list[Any] = [cell.split.key, cell.algorithm, cell.options, cell.words, cell.settings]
    return json.dumps(asked, sort_keys=True, default=str)
