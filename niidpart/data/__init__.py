"""Where labels and features come from: one file a source, named after its option; the folder is the registry.

A source is `load(root, *, options) -> Data`. It reads what lies on the disk and never fetches anything. Labels and groups are read at once,
features for the rows that are asked for. What several sources share is in files that begin with `_`. An option that a source got after splits
of it were made is named in its `LATER`: it is stored only where it is not the default.
"""

import hashlib
import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arithmetic.rng import Ints
from ..errors import UsageError
from ..registry import Registry, coerce
from ..splits.digests import encode_json
from ..splits.recipe import JSON, Source
from .columns import (
    Features,
    chain_features,
    escape_names,
    number_classes,
    number_groups,
    number_groups_alike,
    resolve_rows,
    select_names,
)

__all__ = [
    "SOURCES",
    "Data",
    "Features",
    "chain_features",
    "check_features",
    "escape_names",
    "from_arrays",
    "from_columns",
    "load",
    "load_with",
    "number_classes",
    "number_groups",
    "pool_test_set",
    "resolve_rows",
]

SOURCES = Registry("niidpart.sources", "data set", given=frozenset({"root"}))


@dataclass(frozen=True, eq=False)
class Data:
    """A data set as a source gives it.

    labels: [N] one column of integers, booleans or strings; become class ids 0..K-1 int64 (the sorted distinct labels), the names kept.
    features(rows): [n, ...] of those rows: uint8 images (0..255) or floats; [n, H, W], [n, H, W, C] or [n, D]. None: labels only.
    groups: [N] int64 group of each example, or None. group_names: the names of groups 0..G-1, () where groups are plain numbers.
    test_groups: groups of the test set, numbered alike. content_sha256: identifies features and test set (of formats that are decoded row by
    row: the bytes of the files), "" if unknown.
    name, params, root: what `load` was given, so that a split says where its data is found again; "array" for data handed over.
    """

    labels: Ints
    class_names: tuple[str, ...]
    features: Features | None = None
    groups: Ints | None = None
    test_labels: Ints | None = None
    test_features: Features | None = None
    content_sha256: str = ""
    revision: str = ""
    name: str = "array"
    params: JSON = field(default_factory=dict)
    root: str = ""
    group_names: tuple[str, ...] = ()
    test_groups: Ints | None = None

    @cached_property
    def source(self) -> Source:
        """The identity of this data, as a split file stores it."""
        return Source(
            name=self.name,
            n=len(self.labels),
            n_test=0 if self.test_labels is None else len(self.test_labels),
            class_names=self.class_names,
            labels_sha256=hashlib.sha256(np.ascontiguousarray(self.labels, "<i8").data).hexdigest(),
            content_sha256=self.content_sha256,
            revision=self.revision,
            params=self.params,
        )


def from_arrays(
    x: NDArray[Any] | None,
    y: ArrayLike,
    x_test: NDArray[Any] | None = None,
    y_test: ArrayLike | None = None,
    *,
    groups: ArrayLike | None = None,
    test_groups: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
) -> Data:
    """Data of arrays in memory, checked. Labels of the test set have to be among those of the training set.

    groups, test_groups: [N] integers or strings, one for each example. class_names: names of the labels 0, 1, ..., where these are integers.
    """
    data = from_columns(
        y,
        None if x is None else x.__getitem__,
        y_test,
        None if x_test is None else x_test.__getitem__,
        groups=groups,
        test_groups=test_groups,
        class_names=class_names,
    )
    for part, features, labels in (
        ("training", x, data.labels),
        ("test", x_test, data.test_labels),
    ):
        check_features(part, features, labels)
    if (
        x is not None
        and x_test is not None
        and (x.shape[1:], x.dtype.kind) != (x_test.shape[1:], x_test.dtype.kind)
    ):
        got = f"the training set has examples of {x.dtype}{list(x.shape[1:])}, the test set of {x_test.dtype}{list(x_test.shape[1:])}"
        raise UsageError(f"{got}; they must be of one shape and kind")
    return replace(
        data, content_sha256="" if x is None else _digest_arrays(x, x_test, data.test_labels)
    )


def from_columns(
    y: ArrayLike,
    features: Features | None = None,
    y_test: ArrayLike | None = None,
    test_features: Features | None = None,
    *,
    groups: ArrayLike | None = None,
    test_groups: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    content_sha256: str = "",
    revision: str = "",
) -> Data:
    """Data of columns in memory and features that are read when they are asked for; these are the source's to check."""
    ids, raw = number_classes(y)
    test_ids = None
    if y_test is not None:
        position = {name: k for k, name in enumerate(raw)}
        test_ids_, test_raw = number_classes(y_test)
        if strange := [n for n in test_raw if n not in position]:
            raise UsageError(
                f"the test set has labels that the training set lacks: {', '.join(strange[:5])}"
            )
        test_ids = np.array([position[n] for n in test_raw], np.int64)[test_ids_]
    names = raw if class_names is None else select_names(raw, class_names)
    group, test_group, group_names = number_groups_alike(
        groups, test_groups, len(ids), 0 if test_ids is None else len(test_ids)
    )
    return Data(
        ids,
        names,
        features=features,
        groups=group,
        test_labels=test_ids,
        test_features=test_features,
        content_sha256=content_sha256,
        revision=revision,
        group_names=group_names,
        test_groups=test_group,
    )


def check_features(part: str, x: NDArray[Any] | None, labels: Ints | None) -> None:
    if x is None:
        return
    if x.ndim == 0 or labels is None or len(x) != len(labels):
        rows = len(x) if x.ndim else "no"
        raise UsageError(
            f"the {part} set has {rows} rows of features and {0 if labels is None else len(labels)} labels; they must be as many"
        )
    if x.ndim not in (2, 3, 4) or (x.ndim == 4 and x.shape[3] not in (1, 3)):
        raise UsageError(
            f"features of the {part} set have shape {x.shape}; [N, D], [N, H, W] or [N, H, W, C] with C 1 or 3 is needed"
        )
    if x.dtype.kind == "f" and (bad := int(np.isnan(x).sum())):
        raise UsageError(
            f"features of the {part} set hold {bad} NaN; fill or drop these rows first"
        )
    if x.dtype != np.uint8 and x.dtype.kind != "f":
        raise UsageError(
            f"features of the {part} set are {x.dtype}; uint8 (divided by 255) or floats are needed"
        )


def _digest_arrays(*arrays: NDArray[Any] | None) -> str:
    """sha256 over type, shape and values of features and test set."""
    h = hashlib.sha256()
    for a in arrays:
        h.update(encode_json(None if a is None else [a.dtype.str, list(a.shape)]))
        if a is not None:
            h.update(np.ascontiguousarray(a).reshape(-1).view(np.uint8).data)
    return h.hexdigest()


def load(name: str, root: str | Path | None = None, *, pool: bool = False, **params: Any) -> Data:
    """A data set by the name of its source; or by the path of a file or folder, whose ending says the source; or as `hf:ID`, `hf:PATH`.

    root: the folder (or the one file) where it lies; None for sources that need none. pool: the test set becomes part of what is split: its rows
    follow the training set's, and there is no global test set any more.
    FileNotFoundError names every place that was looked at and what would be needed there.
    """
    name, root, params = resolve_path(name, root, params)
    return load_with(name, root, params | ({"pool": pool} if pool is not False else {}))


ENDINGS = {
    ".npz": "npz",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
}
_PACKED = re.compile(r"\.(gz|bz2|xz)$")


def resolve_path(
    name: str, root: str | Path | None, params: JSON
) -> tuple[str, str | Path | None, JSON]:
    """(source, root, params) of a data set that was named by a path or as `hf:...`; others come back as they are."""
    if name.startswith("hf:"):
        where = name.removeprefix("hf:")
        if Path(where).exists():
            return "hf", where, params
        if re.fullmatch(r"[\w.-]+(/[\w.-]+)?", where, re.ASCII):
            return "hf", root, params | {"repo": where}
        raise FileNotFoundError(
            f"there is no folder {where}; hf:PATH is a folder, hf:ID a data set in the cache, such as hf:ylecun/mnist"
        )
    if name in SOURCES.names() or ":" in name:
        return name, root, params
    if source := ENDINGS.get(Path(_PACKED.sub("", name)).suffix):
        return source, name, params
    return ("image-folder", name, params) if Path(name).is_dir() else (name, root, params)


def load_with(name: str, root: str | Path | None, params: JSON) -> Data:
    """`load`, with the options as a dict: a stranger's file may hold any names."""
    pool = coerce(f"data set {name!r}: pool", params.get("pool", False), bool)
    function = SOURCES.find(name)
    complete = SOURCES.complete(name, {k: v for k, v in params.items() if k != "pool"})
    if (
        root is None
        and inspect.signature(function).parameters["root"].default is inspect.Parameter.empty
    ):
        raise UsageError(
            f"data set {name!r} is read from your disk; say where it lies with --data-root DIR (niidpart.load(name, root))"
        )
    data: Data = function(root, **complete)
    later: frozenset[str] = getattr(inspect.getmodule(function), "LATER", frozenset())
    defaults = {key: p.default for key, p in SOURCES.options(function).items() if key in later}
    complete = {
        key: value
        for key, value in complete.items()
        if key not in defaults or value != defaults[key]
    }
    if pool:
        data, complete = (
            pool_test_set(data),
            complete | {"pool": True},
        )  # written only where true: digests of splits without it stay
    return replace(data, name=name, params=complete, root=str(Path(root).resolve()) if root else "")


def pool_test_set(data: Data) -> Data:
    """The data with its test rows after its training rows, and without a test set. Groups stay where both sets have them."""
    if data.test_labels is None:
        raise UsageError(
            "pool puts the test set behind the training set, and this data has no test set; leave pool out"
        )
    n, m = len(data.labels), len(data.test_labels)
    both = (
        None
        if data.features is None or data.test_features is None
        else chain_features((data.features, n), (data.test_features, m))
    )
    grouped = data.groups is not None and data.test_groups is not None
    return replace(
        data,
        labels=np.concatenate([data.labels, data.test_labels]),
        features=both,
        groups=np.concatenate([data.groups, data.test_groups]) if grouped else None,
        group_names=data.group_names if grouped else (),
        test_labels=None,
        test_features=None,
        test_groups=None,
    )
