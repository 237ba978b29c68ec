"""The labels of a data set that is larger than memory: read in pieces, held as class ids in a file.

`LabelStream` says where they come from, `LabelColumn` is what they become.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..arithmetic.rng import Ints
from ..arithmetic.words import Array
from ..disk.arrays import ArrayFile
from ..disk.progress import tell
from ..errors import UsageError
from ..splitfile.limits import MAX_MANIFEST
from ..splits.recipe import JSON, Source
from .columns import escape_names, number_classes, select_names

Label = int | bool | str

_AROUND_NAME = len('"",')  # bytes of a manifest around the name of a class


@dataclass(frozen=True)
class LabelStream:
    """Labels that are read in pieces, each time they are asked for.

    Parameters
    ----------
    pieces : callable
        `pieces()` goes through arrays of integers, booleans or texts, whose rows are those of the
        data set in their order.
    n : int
        How many labels there are.
    label_names : sequence of str, optional
        Names of the labels 0, 1, ..., where the data set has them.
    digest_content : callable, optional
        Returns the `content_sha256` of `Data`, for which whole files may have to be read.
    name, params, root
        As of `Data`: what the same data set has in memory.

    Examples
    --------
    >>> import numpy as np
    >>> stream = LabelStream(lambda: iter([np.array([4, 2]), np.array([4])]), n=3)
    >>> stream.n
    3
    """

    pieces: Callable[[], Iterator[Array]]
    n: int
    label_names: Sequence[str] | None = None
    digest_content: Callable[[], str] | None = None
    name: str = "array"
    params: JSON = field(default_factory=dict)
    root: str = ""


class LabelColumn(NamedTuple):
    """ids: [N] class ids of the smallest type, in a file. class_sizes: [K]. root: as of `Data`."""

    ids: Array
    class_sizes: Ints
    source: Source
    root: str


def write_label_column(stream: LabelStream, folder: Path) -> LabelColumn:
    """Return the labels as class ids, in a file of the folder. Goes through them twice.

    UsageError where they are no labels.
    """
    sizes = _count_labels(stream)
    labels = sorted(sizes)
    position = {label: k for k, label in enumerate(labels)}
    ids = ArrayFile(folder / "labels", np.min_scalar_type(len(labels) - 1))
    digest = hashlib.sha256()
    for found, numbers in _number_pieces(stream):
        lookup = np.array([position[label] for label in found], "<i8")
        piece = lookup[numbers]
        digest.update(piece.data)
        ids.append(piece)
        tell("reading labels", ids.n, stream.n)
    return LabelColumn(
        ids=ids.finish(),
        class_sizes=np.array([sizes[label] for label in labels], np.int64),
        source=Source(
            name=stream.name,
            n=stream.n,
            n_test=0,
            class_names=_name_classes(labels, stream.label_names),
            labels_sha256=digest.hexdigest(),
            content_sha256=stream.digest_content() if stream.digest_content else "",
            params=stream.params,
        ),
        root=stream.root,
    )


def _count_labels(stream: LabelStream) -> Counter[Label]:
    sizes: Counter[Label] = Counter()
    done = 0
    for found, numbers in _number_pieces(stream):
        times = np.bincount(numbers, minlength=len(found))
        sizes.update(dict(zip(found, times.tolist(), strict=True)))
        _require_nameable(sizes)
        done += len(numbers)
        tell("counting classes", done, stream.n)
    if len({type(label) for label in sizes}) > 1:
        raise UsageError("labels are numbers in some rows and texts in others; make them alike")
    if done != stream.n:
        raise UsageError(f"there are {done} labels where {stream.n} were announced")
    return sizes


def _require_nameable(sizes: Counter[Label]) -> None:
    """Raise UsageError where no manifest holds the names of so many classes."""
    needed = sum(len(str(label)) + _AROUND_NAME for label in sizes)
    if needed > MAX_MANIFEST:
        raise UsageError(
            f"there are {len(sizes)} distinct labels or more, whose names take {needed} bytes of a "
            f"split file, where {MAX_MANIFEST} are allowed; is this a column of ids?"
        )


def _number_pieces(stream: LabelStream) -> Iterator[tuple[list[Label], Ints]]:
    """Go through (the labels of a piece, the number of each row's label among them)."""
    for piece in stream.pieces():
        if piece.dtype.kind in "OU":
            texts = piece.astype(object)
            found: list[Label] = sorted(set(texts.tolist()))
            numbers, _ = number_classes(texts)
        else:
            numbers, names = number_classes(piece)
            read = _read_truth if piece.dtype.kind == "b" else int
            found = [read(name) for name in names]
        yield found, numbers


def _read_truth(name: str) -> bool:
    return name == "True"


def _name_classes(labels: Sequence[Label], label_names: Sequence[str] | None) -> tuple[str, ...]:
    names = [str(label) for label in labels]
    if label_names is not None:
        return select_names(names, label_names)
    return escape_names(names)
