"""`export`: a split in the layout of another library, as a folder written whole or not at all."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Data
from ..data.of_split import require_data_of
from ..errors import UsageError, require_path, require_type
from ..features.transforming import list_feature_steps
from ..files import write_folder
from ..formats import FORMATS, LOSABLE
from ..splits.recipe import Recipe, Transform
from ..splits.split import FederatedSplit
from ..splits.view import require_split
from ..transforms import TRANSFORMS, FeatureTransform, LabelTransform

_NAMES_SHOWN = 5  # of the classes, in an error


def export(
    split: FederatedSplit,
    data: Data | None,
    format: str,
    out: str | Path,
    *,
    lossy: bool = False,
    **options: Any,
) -> Path:
    """Write a split as a folder that another library reads. Whatever fails, nothing stays behind.

    Parameters
    ----------
    split : FederatedSplit
    data : Data or None
        The data set that it is of; None for formats that hold rows alone.
    format : str
        A file of `niidpart/formats`, or `file.py:function`.
    out : str or Path
        The folder; it must be empty or not there.
    lossy : bool
        Leave out what the format cannot say; else that is named and refused.
    **options
        The format's own.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    UsageError
        For what cannot be asked, and for what would be lost.
    FileFault
        `out` is a file, or a folder that holds something.

    Examples
    --------
    >>> import niidpart, tempfile
    >>> split = niidpart.make(niidpart.load("digits"), "dir", n_parties=5)
    >>> folder = niidpart.export(split, None, "csv", tempfile.mkdtemp())
    >>> sorted(path.name for path in folder.iterdir())
    ['niidpart.json', 'parties.csv', 'rows.csv']
    """
    require_split(split)
    _require_name(out)
    entry = FORMATS.record(format)
    options = FORMATS.complete(format, options)
    if data is None and (entry.needs_data or options.get("include_data")):
        raise UsageError(
            f"format {format!r} writes labels or features; hand over the data set "
            "(niidpart.load(...); on the command line --data-root)"
        )
    if data is not None:
        require_type("data", data, Data, "a data set (niidpart.load, niidpart.from_arrays)")
        require_data_of(split, data)
    if not lossy:
        _require_lossless(split, format, data)
    return write_folder(Path(out), FORMATS.find(format)(split, data, **options))


def _require_name(out: object) -> None:
    require_path("out", out)
    if not str(out):
        raise UsageError("out is ''; the name of a folder is needed")


def _require_lossless(split: FederatedSplit, format: str, data: Data | None) -> None:
    """Raise UsageError that names what the split and the data have beyond the format."""
    holds = FORMATS.record(format).holds
    lost = [
        f"{LOSABLE[name]} ({detail})"
        for name, detail in _list_losable(split, data)
        if name not in holds
    ]
    if lost:
        raise UsageError(
            f"format {format!r} cannot say {'; '.join(lost)}. To leave that out, allow it: "
            "--lossy (lossy=True)"
        )


def _list_losable(split: FederatedSplit, data: Data | None) -> Iterator[tuple[str, str]]:
    """Yield (name in LOSABLE, the numbers) of what there is besides training parts."""
    for name in ("val", "test"):
        n = split.parts[name].n
        if n:
            yield name, f"{n} examples"
    if split.overlaps:
        n_rows = sum(part.n for part in split.parts.values())
        yield "overlap", f"{n_rows - split.n_held} rows more than examples"
    columns = _list_own_columns(split)
    if columns:
        yield "columns", ", ".join(columns)
    names = split.source.class_names
    if names != tuple(map(str, range(len(names)))):
        more = ", ..." if len(names) > _NAMES_SHOWN else ""
        yield "classes", ", ".join(names[:_NAMES_SHOWN]) + more
    for name, is_fresh in (("transforms", False), ("fresh", True)):
        transforms = _list_transforms(split, is_fresh)
        if transforms:
            yield name, ", ".join(transforms)
    kind = _find_wide_type(split, data)
    if kind:
        yield "precision", f"{kind}, which become float32"
    if ":" in split.recipe.strategy:
        own_code = "is code of your own, which no import runs: the split comes in again as"
        yield "recipe", f"{split.recipe.strategy} {own_code} `imported`"


def _list_own_columns(split: FederatedSplit) -> list[str]:
    """Return the columns of which features and labels tell nothing: of the strategy, an import."""
    told = tuple(f"{name}_" for name, step in _list_applied(split.recipe))
    return [name for name in split.columns if not name.startswith(told)]


def _list_transforms(split: FederatedSplit, is_fresh: bool) -> list[str]:
    return [
        transform.name
        for _, transform in _list_applied(split.recipe)
        if bool(transform.params.get("fresh")) is is_fresh
    ]


def _list_applied(recipe: Recipe) -> list[tuple[str, Transform]]:
    """Return the transforms that change features or labels, each with the prefix of its columns."""
    changing = (FeatureTransform, LabelTransform)
    return [
        (name, step)
        for name, step in recipe.named_transforms
        if isinstance(TRANSFORMS.record(step.name), changing)
    ]


def _find_wide_type(split: FederatedSplit, data: Data | None) -> str:
    """Return the type of features that parties see in more digits than float32 has, else ""."""
    if data is None or data.features is None or list_feature_steps(split.recipe):
        return ""  # transforms make float32 of all features
    kind = data.features(np.zeros(1, np.int64)).dtype
    return kind.name if kind.kind == "f" and kind.itemsize > 4 else ""
