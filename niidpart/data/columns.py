"""Columns of labels and groups become numbers with names; rows of several arrays become one."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arithmetic.rng import Ints
from ..errors import UsageError

Features = Callable[[Ints | slice], NDArray[Any]]


def number_classes(labels: ArrayLike) -> tuple[Ints, tuple[str, ...]]:
    """(class ids [N] int64, names [K]) of a column of integers, booleans or strings. The classes are the sorted distinct labels."""
    y = np.asarray(labels)
    if y.ndim != 1:
        raise UsageError(
            f"labels have shape {y.shape}; one column [N] is needed: labels[:, 0] of a single column, labels.argmax(1) of one-hot "
            "(multi-label is not supported)"
        )
    if not len(y):
        raise UsageError("there are no labels; at least one example is needed")
    if y.dtype.kind == "f":
        bad = int(np.count_nonzero(np.isnan(y)))
        what = f"{bad} of {len(y)} labels are NaN" if bad else f"labels are {y.dtype} (regression?)"
        raise UsageError(
            f"{what}; integers, booleans or strings are needed, such as labels.astype(int)"
        )
    if y.dtype.kind == "O" and all(isinstance(v, str) for v in y.tolist()):
        return _of_text(y)
    if y.dtype.kind not in "iubU":
        raise UsageError(f"labels are of type {y.dtype}; integers, booleans or strings are needed")
    low = int(y.min()) if y.dtype.kind in "iu" else 0
    if (
        y.dtype.kind in "iu" and (span := int(y.max()) - low) < 1 << 20
    ):  # without the sort of np.unique
        wide = y if y.dtype.itemsize == 8 else y.astype(np.int64)  # small types would overflow
        offset = (wide - wide.dtype.type(low) if low else wide).astype(np.int64, copy=False)
        present = np.bincount(offset, minlength=span + 1) > 0
        ids = np.cumsum(present, dtype=np.int64)[offset] - 1 if not present.all() else offset
        return ids, tuple(str(int(k) + low) for k in np.flatnonzero(present))
    distinct, ids = np.unique(y, return_inverse=True)
    return ids.astype(np.int64), escape_names([str(k) for k in distinct.tolist()])


def number_groups(groups: ArrayLike, n: int) -> tuple[Ints, tuple[str, ...]]:
    """(groups [n] int64, names) of a column of integers, which stay as they are and have no names, or of strings, numbered in sorted order."""
    g = np.asarray(groups)
    if g.dtype.kind == "O" and g.shape == (n,) and all(isinstance(v, str) for v in g.tolist()):
        return _of_text(g)
    if g.shape != (n,) or g.dtype.kind not in "iuU":
        raise UsageError(
            f"groups have shape {g.shape} and type {g.dtype}; one integer or string for each of the {n} examples is needed"
        )
    if g.dtype.kind != "U":
        return g.astype(np.int64), ()
    distinct, ids = np.unique(g, return_inverse=True)
    return ids.astype(np.int64), escape_names(distinct.tolist())


def _of_text(words: NDArray[Any]) -> tuple[Ints, tuple[str, ...]]:
    """(ids [n] int64, names) of an array of python's texts. Never an array of fixed width, which one long text makes wide for all."""
    texts = words.tolist()
    distinct = sorted(set(texts))
    position = {text: k for k, text in enumerate(distinct)}
    return np.fromiter(map(position.__getitem__, texts), np.int64, len(texts)), escape_names(
        distinct
    )


def select_names(raw: tuple[str, ...], class_names: Sequence[str]) -> tuple[str, ...]:
    """The names of the labels `raw`, which number them."""
    numbers = [int(r) if r.isascii() and r.isdigit() else -1 for r in raw]
    if wrong := [r for r, k in zip(raw, numbers, strict=True) if not 0 <= k < len(class_names)]:
        raise UsageError(
            f"the labels have names for 0..{len(class_names) - 1}, and there are labels {', '.join(wrong[:5])}"
        )
    return escape_names([class_names[k] for k in numbers])


def number_groups_alike(
    train: ArrayLike | None, test: ArrayLike | None, n: int, n_test: int
) -> tuple[Ints | None, Ints | None, tuple[str, ...]]:
    """(groups [n], groups of the test set [m], names) of two columns, numbered alike."""
    if train is None:
        return None, None, ()
    if test is None:
        ids, names = number_groups(train, n)
        return ids, None, names
    a, b = np.asarray(train), np.asarray(test)
    if a.shape != (n,) or b.shape != (n_test,):
        raise UsageError(
            f"groups have shapes {a.shape} and {b.shape}; one for each of the {n} training and {n_test} test examples is needed"
        )
    if (a.dtype.kind in "iu") != (b.dtype.kind in "iu"):
        raise UsageError(
            f"groups are {a.dtype} in the training set and {b.dtype} in the test set; both must be integers or both text"
        )
    ids, names = number_groups(np.concatenate([a, b]), n + n_test)
    return ids[:n], ids[n:], names


def escape_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names as a split file holds them: what cannot be printed is written as an escape such as \\n. ValueError where two become one."""
    shown = tuple(
        name if name.isprintable() else name.encode("unicode_escape").decode("ascii")
        for name in names
    )
    if len(set(shown)) < len(shown):
        twice = sorted(name for name, n in Counter(shown).items() if n > 1)
        raise UsageError(
            f"several classes or groups have the name {', '.join(map(repr, twice[:5]))}; give each its own"
        )
    return shown


def chain_features(*parts: tuple[Features, int]) -> Features:
    """The features of (features, number of rows), one after the other."""
    bounds = np.cumsum([0, *(n for _, n in parts)], dtype=np.int64)

    def features(rows: Ints | slice) -> NDArray[Any]:
        at = resolve_rows(rows, int(bounds[-1]))
        out: NDArray[Any] | None = None
        for (part, _), low, high in zip(parts, bounds[:-1], bounds[1:], strict=True):
            here = (at >= low) & (at < high)
            if here.any() or (not len(at) and out is None):
                x = part(at[here] - low)
                out = np.empty((len(at), *x.shape[1:]), x.dtype) if out is None else out
                out[here] = x
        if out is None:
            raise IndexError(f"there are no rows in 0..{bounds[-1] - 1}")
        return out

    return features


def resolve_rows(rows: Ints | slice, n: int) -> Ints:
    """[m] int64 rows in 0..n-1, of an array of them or of a slice. IndexError outside."""
    if isinstance(rows, slice):
        return np.arange(*rows.indices(n), dtype=np.int64)
    at = np.asarray(rows, np.int64)
    if len(at) and (at.min() < 0 or at.max() >= n):
        raise IndexError(f"rows {at.min()}..{at.max()} were asked for; there are 0..{n - 1}")
    return at
