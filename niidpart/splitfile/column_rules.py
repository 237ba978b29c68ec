"""The rules on transforms and their columns: 41 and 43 of docs/format.md.

Rule 41 is looked at before a value is read, rule 43 with each value that is: whoever applies a
transform checks nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..arithmetic.words import Array
from ..errors import UsageError
from ..features.transforming import draw_columns
from ..registry import Range, describe_ranges
from ..splits.recipe import Recipe, Transform
from ..transforms import TRANSFORMS
from .faults import Fault, make_printable, refuse
from .layout import Shaped
from .stored import Look


def check_transforms(recipe: Recipe, columns: Mapping[str, Shaped]) -> list[Fault]:
    """Return the faults of rule 41: whoever applies a transform finds its options and columns."""
    faults = []
    one = replace(recipe, n_parties=1)  # nothing is drawn for as many parties as a file states
    for name, transform in recipe.named_transforms:
        faults += _check_transform(name, transform, one, columns)
    return faults


def _check_transform(
    name: str, transform: Transform, recipe: Recipe, columns: Mapping[str, Shaped]
) -> list[Fault]:
    if transform.name not in TRANSFORMS.names():  # also where it names code, which is not run
        shown = make_printable(transform.name[:60])
        message = f"the transform {shown!r} is not known; install the niidpart that wrote the file"
        return [Fault(41, message)]
    try:
        if TRANSFORMS.complete(transform.name, transform.params) != transform.params:
            raise UsageError("it does not say all options")
        with np.errstate(all="ignore"):
            wanted = draw_columns(recipe, name, transform)
    except (ValueError, ArithmeticError) as error:
        return [Fault(41, f"the transform {name} cannot be applied: {error}")]
    faults = []
    for key, example in wanted.items():
        column = columns.get(key)
        if column is None or column.dtype != example.dtype:
            faults.append(Fault(41, f"/parties/{key} is missing or not of {example.dtype}"))
    return faults


def list_column_checks(recipe: Recipe) -> dict[str, Look]:
    """Return the check of each column that a transform of the recipe has, by the column's name."""
    checks: dict[str, Look] = {}
    for name, transform in recipe.named_transforms:
        columns = TRANSFORMS.record(transform.name).columns
        for key, ranges in columns.items():
            checks[f"{name}_{key}"] = ColumnCheck(f"{name}_{key}", ranges)
    return checks


class ColumnCheck:
    """Checks rule 43 on blocks of a column."""

    def __init__(self, name: str, ranges: Sequence[Range]):
        self.name, self.ranges = name, ranges

    def __call__(self, start: int, block: Array) -> None:
        # of numbers one of which is none, numpy finds that one the least
        for place in (int(block.argmin()), int(block.argmax())):
            value = block[place].item()
            if math.isfinite(value) and all(bound.allows(value) for bound in self.ranges):
                continue
            needed = describe_ranges(self.ranges) or "a finite number"
            refuse(
                43,
                f"/parties/{self.name} is {value!r} at party {start + place}; it must be {needed}",
            )
