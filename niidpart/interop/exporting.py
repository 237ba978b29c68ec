"""`export`: a split in the layout of another library, as a folder that is written whole or not at all."""

import typing
from collections.abc import Iterable, Iterator
from inspect import getmodule
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Data
from ..data.of_split import source_faults
from ..errors import UsageError
from ..features.transforming import name_transforms
from ..files import write_folder
from ..formats import FORMATS, LOSABLE
from ..registry import Function
from ..splits.split import FederatedSplit


def export(
    split: FederatedSplit,
    data: Data | None,
    format: str,
    out: str | Path,
    *,
    lossy: bool = False,
    **options: Any,
) -> Path:
    """Writes the split as the folder `out` in `format` (a file of `niidpart/formats`, or `file.py:function`), and returns its path.

    data: the data set that it is of; None for formats that hold rows alone. lossy: what the format cannot say is left out; else it is refused and
    named. options: the format's own. ValueError for what cannot be asked; FileFault where `out` is a file or a folder that holds something;
    OSError where the disk refuses. Whatever fails, nothing stays behind.
    """
    function = FORMATS.find(format)
    options = FORMATS.complete(format, options)
    if not str(out):
        raise UsageError("out is ''; the name of a folder is needed")
    if data is None and (needs_data(function) or options.get("include_data")):
        raise UsageError(
            f"format {format!r} writes labels or features; hand over the data set (niidpart.load(...); on the command line --data-root)"
        )
    if data is not None and (faults := source_faults(split, data)):
        raise UsageError(f"this is not the data of the split: {faults[0].message}")
    lost = losses(split, function, data)
    if lost and not lossy:
        raise UsageError(
            f"format {format!r} cannot say {'; '.join(lost)}. To leave that out, allow it: --lossy (lossy=True)"
        )
    files: Iterable[tuple[str, bytes]] = function(split, data, **options)
    return write_folder(Path(out), files)


def needs_data(format: Function) -> bool:
    """Whether an exporter cannot do without the data set: its `data` is annotated as `Data`, not as `Data | None`."""
    return typing.get_type_hints(format).get("data") is Data


def losses(split: FederatedSplit, format: Function, data: Data | None = None) -> list[str]:
    """What the split, and the data where it is handed over, have that the format cannot say."""
    holds: frozenset[str] = getattr(getmodule(format), "HOLDS", frozenset())
    return [
        f"{LOSABLE[name]} ({detail})" for name, detail in _has(split, data) if name not in holds
    ]


def _has(split: FederatedSplit, data: Data | None) -> Iterator[tuple[str, str]]:
    """(name in LOSABLE, the numbers) of what the split and its data have beside training parts."""
    for name in ("val", "test"):
        if n := split.parts[name].n:
            yield name, f"{n} examples"
    if split.overlaps:
        yield (
            "overlap",
            f"{sum(part.n for part in split.parts.values()) - split.n_held} rows more than examples",
        )
    prefixes = tuple(f"{name}_" for name, _ in name_transforms(split.recipe))
    if own := [name for name in split.columns if not name.startswith(prefixes)]:
        yield "columns", ", ".join(own)
    names = split.source.class_names
    if names != tuple(map(str, range(len(names)))):
        yield "classes", ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    for name, fresh in (("transforms", False), ("fresh", True)):
        if found := [
            t.name for t in split.recipe.transforms if bool(t.params.get("fresh")) is fresh
        ]:
            yield name, ", ".join(found)
    if kind := _wide(split, data):
        yield "precision", f"{kind}, which become float32"
    if ":" in split.recipe.strategy:
        yield (
            "recipe",
            f"{split.recipe.strategy} is code of your own, which no import runs: the split comes in again as `imported`",
        )


def _wide(split: FederatedSplit, data: Data | None) -> str:
    """The type of features that parties see in more than float32; "" where they do not, as with transforms."""
    if data is None or data.features is None or split.recipe.transforms:
        return ""
    kind = data.features(np.zeros(1, np.int64)).dtype
    return kind.name if kind.kind == "f" and kind.itemsize > 4 else ""
