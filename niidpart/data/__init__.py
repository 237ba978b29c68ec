"""Where labels and features come from: one file a source, named after its option; the folder is the registry.

A source is `load(root, *, options) -> Data`. It reads what lies on the disk and never fetches anything.
"""

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..recipe import JSON, Source, canonical
from ..registry import Registry
from ..rng import Ints

SOURCES = Registry("niidpart.data", "data set", given=frozenset({"root"}))
Features = Callable[[Ints | slice], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Data:
    """A data set as a source gives it.

    labels: [N] one column of integers, booleans or strings; become class ids 0..K-1 int64 (the sorted distinct labels), the names kept.
    features(rows): [n, ...] of those rows: uint8 images (0..255) or floats; [n, H, W], [n, H, W, C] or [n, D]. None: labels only.
    groups: [N] int64 group of each example, or None. content_sha256: identifies features and test set, "" if unknown.
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
) -> Data:
    """Data of arrays in memory, checked. Labels of the test set have to be among those of the training set."""
    ids, names = class_ids(y)
    test_ids = None
    if y_test is not None:
        raw, position = np.asarray(y_test), {name: k for k, name in enumerate(names)}
        test_ids_, test_names = class_ids(raw)
        strange = [n for n in test_names if n not in position]
        if strange:
            raise ValueError(f"the test set has labels that the training set lacks: {', '.join(strange[:5])}")
        test_ids = np.array([position[n] for n in test_names], np.int64)[test_ids_]
    for part, features, labels in (("training", x, ids), ("test", x_test, test_ids)):
        _check_features(part, features, labels)
    if x is not None and x_test is not None and (x.shape[1:], x.dtype.kind) != (x_test.shape[1:], x_test.dtype.kind):
        got = f"the training set has examples of {x.dtype}{list(x.shape[1:])}, the test set of {x_test.dtype}{list(x_test.shape[1:])}"
        raise ValueError(f"{got}; they must be of one shape and kind")
    return Data(
        ids,
        names,
        features=None if x is None else x.__getitem__,
        groups=None if groups is None else group_ids(groups, len(ids)),
        test_labels=test_ids,
        test_features=None if x_test is None else x_test.__getitem__,
        content_sha256="" if x is None else _content(x, x_test, test_ids),
    )


def class_ids(labels: ArrayLike) -> tuple[Ints, tuple[str, ...]]:
    """(class ids [N] int64, names [K]) of a column of integers, booleans or strings. The classes are the sorted distinct labels."""
    y = np.asarray(labels)
    if y.ndim != 1:
        raise ValueError(
            f"labels have shape {y.shape}; one column [N] is needed: labels[:, 0] of a single column, labels.argmax(1) of one-hot "
            "(multi-label is not supported)"
        )
    if not len(y):
        raise ValueError("there are no labels; at least one example is needed")
    if y.dtype.kind == "f":
        bad = int(np.isnan(y).sum())
        what = f"{bad} of {len(y)} labels are NaN" if bad else f"labels are {y.dtype} (regression?)"
        raise ValueError(f"{what}; integers, booleans or strings are needed, such as labels.astype(int)")
    if y.dtype.kind == "O" and all(isinstance(v, str) for v in y.tolist()):
        y = y.astype(str)
    if y.dtype.kind not in "iubU":
        raise ValueError(f"labels are of type {y.dtype}; integers, booleans or strings are needed")
    low = int(y.min()) if y.dtype.kind in "iu" else 0
    if y.dtype.kind in "iu" and (span := int(y.max()) - low) < 1 << 20:  # without the sort of np.unique
        offset = (y - y.dtype.type(low)).astype(np.int64, copy=False) if y.dtype.itemsize == 8 else y.astype(np.int64) - low  # small types would overflow
        present = np.bincount(offset, minlength=span + 1) > 0
        ids = np.cumsum(present)[offset] - 1 if not present.all() else offset
        return ids, tuple(str(int(k) + low) for k in np.flatnonzero(present))
    distinct, ids = np.unique(y, return_inverse=True)
    return ids.astype(np.int64), tuple(str(k) for k in distinct.tolist())


def group_ids(groups: ArrayLike, n: int) -> Ints:
    """[n] int64 of a column of integers."""
    g = np.asarray(groups)
    if g.shape != (n,) or g.dtype.kind not in "iu":
        raise ValueError(f"groups have shape {g.shape} and type {g.dtype}; one integer for each of the {n} examples is needed")
    return g.astype(np.int64)


def _check_features(part: str, x: NDArray[Any] | None, labels: Ints | None) -> None:
    if x is None:
        return
    if x.ndim == 0 or labels is None or len(x) != len(labels):
        rows = len(x) if x.ndim else "no"
        raise ValueError(f"the {part} set has {rows} rows of features and {0 if labels is None else len(labels)} labels; they must be as many")
    if x.ndim not in (2, 3, 4) or (x.ndim == 4 and x.shape[3] not in (1, 3)):
        raise ValueError(f"features of the {part} set have shape {x.shape}; [N, D], [N, H, W] or [N, H, W, C] with C 1 or 3 is needed")
    if x.dtype.kind == "f" and (bad := int(np.isnan(x).sum())):
        raise ValueError(f"features of the {part} set hold {bad} NaN; fill or drop these rows first")
    if x.dtype != np.uint8 and x.dtype.kind != "f":
        raise ValueError(f"features of the {part} set are {x.dtype}; uint8 (divided by 255) or floats are needed")


def _content(*arrays: NDArray[Any] | None) -> str:
    """sha256 over type, shape and values of features and test set."""
    h = hashlib.sha256()
    for a in arrays:
        h.update(canonical(None if a is None else [a.dtype.str, list(a.shape)]))
        if a is not None:
            h.update(np.ascontiguousarray(a).reshape(-1).view(np.uint8).data)
    return h.hexdigest()


def load(name: str, root: str | Path | None = None, **params: Any) -> Data:
    """A data set by the name of its source, or by the path of an .npz file.

    root: the folder (for .npz: the file) where it lies; None for sources that need none.
    FileNotFoundError names every place that was looked at and what would be needed there.
    """
    if name.endswith(".npz"):
        name, root = "npz", name
    return load_with(name, root, params)


def load_with(name: str, root: str | Path | None, params: JSON) -> Data:
    """`load`, with the options as a dict: a stranger's file may hold any names."""
    function = SOURCES.find(name)
    complete = SOURCES.complete(name, params)
    if root is None and inspect.signature(function).parameters["root"].default is inspect.Parameter.empty:
        raise ValueError(f"data set {name!r} is read from your disk; say where it lies with --data-root DIR (niidpart.load(name, root))")
    data: Data = function(root, **complete)
    return replace(data, name=name, params=complete, root=str(Path(root).resolve()) if root else "")
