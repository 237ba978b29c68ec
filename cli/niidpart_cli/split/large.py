"""Which splits `niidpart make` makes on the disk."""

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..terminal import say

if TYPE_CHECKING:
    from niidpart.data import LabelStream


class AskedData(NamedTuple):
    """A data set as `niidpart.load` takes it: its name or path, its place, and options."""

    name: str
    root: str | None
    options: dict[str, Any]


def find_large_labels(
    asked: AskedData, request: dict[str, Any], values: dict[str, Any]
) -> "LabelStream | None":
    """Return the labels of a data set that is to be split on the disk, None for any other.

    With --disk-from whatever stands in the way is an error. Without it, what cannot be done on the
    disk is tried in memory.
    """
    from niidpart import UsageError, compose, stream_labels
    from niidpart.data import SOURCES
    from niidpart.data.loading import resolve_path
    from niidpart.streaming.derivation import STREAMED_ROWS, require_streamable

    is_asked = values["disk_from"] is not None
    least = values["disk_from"] if is_asked else STREAMED_ROWS
    source, _, _ = resolve_path(asked.name, asked.root, asked.options)
    can_be = source in SOURCES.names() and SOURCES.record(source).stream is not None
    if not can_be and not is_asked:
        return None
    if is_asked and values["target"]:
        raise click.UsageError("--target tries many splits in memory; leave out --disk-from")
    if values["target"]:
        return None
    try:
        labels = stream_labels(asked.name, asked.root, **asked.options)
        if labels.n < least:
            if is_asked:
                few = f"{asked.name} has {labels.n} rows, fewer than --disk-from {least}"
                say(f"{few}, so it is split in memory, with the same result", err=True)
            return None
        require_streamable(compose(**request), labels.n)
    except UsageError:
        if is_asked:
            raise
        return None
    return labels
