"""Of which data splits are: rows of one name are to be of one. Needs no torch."""

from collections.abc import Sequence

from niidpart.data import SOURCES
from niidpart.errors import UsageError
from niidpart.splits.recipe import Source

from ..plans.split_words import SplitRequest
from .stand_ins import is_stand_in

_DATASET = "dataset"  # the axis that names the data of a split


def require_told_data(
    new: tuple[SplitRequest, Source], others: Sequence[tuple[SplitRequest, Source]]
) -> None:
    """Raise UsageError where a split and another of its group are of unlike data under one name.

    Data sets that a plan names are an axis, and a table parts them; of files it knows what the plan
    says beside them.
    """
    request, source = new
    name = request.where.get(_DATASET)
    if request.file and name in SOURCES.names() and name != source.name:
        raise UsageError(
            f"{request.file} is of {source.name}, and the plan says dataset = {name!r}"
        )
    for other, of_other in others:
        if request.is_drawn and other.is_drawn:
            continue
        names = {name, other.where.get(_DATASET)}
        is_told = None not in names and len(names) > 1
        if is_told or is_same_data(of_other, source):
            continue
        raise UsageError(
            f"{_describe_split(other)} is of {describe_data(of_other)}, {_describe_split(request)} "
            f"of {describe_data(source)}, and no axis tells them apart: a table would average over "
            "unlike data, or compare them, as if they were one; say of each file which data it is "
            f"of (dataset = {source.name!r} beside it), part them by [[groups]], or write a plan "
            "for each"
        )


def _describe_split(request: SplitRequest) -> str:
    return str(request.file or request.where["split"])


def describe_data(source: Source) -> str:
    """Return a data set in words, so that two that are not the same read otherwise."""
    contents = (source.content_sha256 or source.labels_sha256)[:8]
    n_classes = len(source.class_names)
    return f"{source.name} ({source.n} examples, {n_classes} classes, contents {contents})"


def is_same_data(a: Source, b: Source) -> bool:
    """Return whether two splits are of the same examples, as far as is known."""
    if is_stand_in(a) or is_stand_in(b):
        return a.name == b.name
    labels = (a.n, a.n_test, a.class_names, a.labels_sha256)
    # Files of older versions do not say the digest of the contents.
    contents_differ = a.content_sha256 and b.content_sha256 and a.content_sha256 != b.content_sha256
    return labels == (b.n, b.n_test, b.class_names, b.labels_sha256) and not contents_differ
