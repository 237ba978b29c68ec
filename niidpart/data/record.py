"""`Data`: a data set in the form that everything else works with."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..disk.digesting import digest_values
from ..errors import UsageError
from ..splits.recipe import JSON, Source
from .conversion import require_texts, to_array
from .rows import Features


@dataclass(frozen=True, eq=False)
class Data:
    """A data set, as a source gives it.

    `niidpart.load` and `niidpart.from_arrays` make one; the constructor is for class ids that are
    numbered already. It checks what it is given and changes none of the caller's arrays.

    Parameters
    ----------
    labels : array of int [N]
        Class ids 0..K-1.
    class_names : sequence of str [K]
        The name of each class.
    features : callable, optional
        `features(rows)` gives [n, ...] of these rows: uint8 images (0..255) or floats, of shape
        [n, H, W], [n, H, W, C] or [n, D]. None: labels only.
    groups : array of int [N], optional
        The group of each example.
    test_labels, test_features, test_groups : optional
        The data set's own test set, in the same form.
    content_sha256 : str
        Identifies features and test set (of formats that are decoded row by row: the bytes of the
        files), "" if unknown.
    revision : str
        The commit of a data set that has commits.
    name, params, root : str, dict, str
        What `load` was given, so that a split says where its data is found again; "array" for
        data that was handed over.
    noisy_labels : array of int [N], optional
        Class ids as people gave them, for the transform human-noise.
    embeddings : array [N, D], optional
        Numbers by which the strategy semantic finds clusters, in place of the features.
    group_names : sequence of str [G]
        The names of the groups 0..G-1, () where groups are plain numbers.
    feature_names : sequence of str
        What each feature of a table is, "job=clerk" of a one-hot column; () of images and others.
    feature_fault : str
        Why the features of a table cannot be used as they are, "" where they can. `make` refuses
        such data.

    Raises
    ------
    UsageError
        For values of another type or shape, and for class ids or groups without a name.

    Examples
    --------
    >>> Data([0, 1, 1], ["cat", "dog"]).source.n
    3
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
    feature_names: tuple[str, ...] = ()
    feature_fault: str = ""
    noisy_labels: Ints | None = None
    embeddings: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        for key in ("content_sha256", "revision", "name", "root", "feature_fault"):
            _require_type(key, getattr(self, key), str)
        _require_type("params", self.params, dict)
        class_names = _to_names("class_names", self.class_names)
        group_names = _to_names("group_names", self.group_names)
        require_texts("feature_names", self.feature_names)
        labels = _to_ids("labels", self.labels, None, class_names)
        test_labels = _to_part("test_labels", self.test_labels, None, class_names)
        n_test = 0 if test_labels is None else len(test_labels)
        converted = {
            "class_names": class_names,
            "group_names": group_names,
            "feature_names": tuple(self.feature_names),
            "labels": labels,
            "test_labels": test_labels,
            "groups": _to_part("groups", self.groups, len(labels), group_names),
            "test_groups": _to_part("test_groups", self.test_groups, n_test, group_names),
            "noisy_labels": _to_part("noisy_labels", self.noisy_labels, len(labels), class_names),
            "embeddings": _to_embeddings(self.embeddings, len(labels)),
        }
        for key, value in converted.items():
            object.__setattr__(self, key, value)  # the record is frozen from here on
        for key in ("features", "test_features"):
            features = getattr(self, key)
            if features is not None and not callable(features):
                advice = "niidpart.from_arrays takes arrays"
                raise UsageError(f"{key} is no function that gives rows; {advice}")
        if self.test_features is not None and test_labels is None:
            raise UsageError("there are test_features and no test_labels; give both or neither")

    @cached_property
    def source(self) -> Source:
        """The identity of this data, as a split file stores it."""
        digest = hashlib.sha256()
        digest_values(digest, self.labels.astype("<i8", copy=False), "labels")
        return Source(
            name=self.name,
            n=len(self.labels),
            n_test=0 if self.test_labels is None else len(self.test_labels),
            class_names=self.class_names,
            labels_sha256=digest.hexdigest(),
            content_sha256=self.content_sha256,
            revision=self.revision,
            params=self.params,
        )


def _require_type(what: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        got = f"{what} is {str(value)[:80]!r}, of type {type(value).__name__}"
        raise UsageError(f"{got}; a {kind.__name__} is needed")


def _to_names(what: str, names: Sequence[str]) -> tuple[str, ...]:
    require_texts(what, names)
    if len(set(names)) < len(names):
        raise UsageError(f"{what} holds a name twice; give each its own")
    return tuple(names)


def _to_part(what: str, values: Any, n: int | None, names: Sequence[str]) -> Ints | None:
    return None if values is None else _to_ids(what, values, n, names)


def _to_embeddings(values: Any, n: int) -> NDArray[Any] | None:
    """Return numbers [N, D] as they are; UsageError for others."""
    if values is None:
        return None
    embeddings = to_array("embeddings", values)
    is_table = embeddings.ndim == 2 and len(embeddings) == n and embeddings.shape[1] > 0
    if not is_table or embeddings.dtype.kind not in "iuf":
        got = f"{embeddings.dtype}{list(embeddings.shape)}"
        raise UsageError(
            f"embeddings are {got}; numbers [N, D], a row for each of {n} examples, are needed"
        )
    return embeddings


def _to_ids(what: str, values: Any, n: int | None, names: Sequence[str]) -> Ints:
    """Return numbers as int64, in 0..len(names)-1 where they have names.

    n: how many there must be, None for any number of labels, which have names always.
    """
    ids = to_array(what, values)
    wrong_length = n is not None and ids.shape != (n,)
    if ids.ndim != 1 or wrong_length or ids.dtype.kind not in "iu":
        needed = "one whole number for each example" if n is None else f"{n} whole numbers"
        raise UsageError(f"{what} are {ids.dtype}{list(ids.shape)}; [N], {needed}, is needed")
    ids = ids.astype(np.int64, copy=False)
    have_names = len(names) > 0 or n is None
    if have_names and len(ids):
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= len(names):
            known = f"there are {len(names)} names, for 0..{len(names) - 1}"
            raise UsageError(f"{what} are {low}..{high}, and {known}")
    return ids
