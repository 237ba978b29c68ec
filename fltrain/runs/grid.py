"""The product of lists, and what its cells are called. Needs no torch."""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


def multiply_axes(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return every choice of a value from each list, the last list fastest."""
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def name_folder(numbers: Mapping[str, Any]) -> str:
    """Return `mu=0.001,seed=0`: a name that every file system takes."""
    return ",".join(f"{name}={write_value(value)}" for name, value in numbers.items())


def write_value(value: Any) -> str:
    """Return `1e-05`, `0.1`, `1`: a number as short as it goes."""
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def name_splits(given: Iterable[str]) -> list[str]:
    """Return a name for each split, of its file's stem; -2, -3, ... where two have one stem.

    Letters, digits and ._+- alone.
    """
    names: list[str] = []
    for where in given:
        if where.startswith("hub:"):
            where = where.rpartition("@")[0] or where
        plain = re.sub(r"[^A-Za-z0-9._+-]+", "-", Path(where).name.removesuffix(".h5"))
        stem = plain[:60].strip(".-") or "split"
        name, n = stem, 1
        while name in names:
            n += 1
            name = f"{stem}-{n}"
        names.append(name)
    return names
