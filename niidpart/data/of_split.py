"""The data set of a split: opening it, and comparing it with what the split was made for."""

from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from ..arithmetic.rng import Ints
from ..arithmetic.words import Array
from ..errors import FileFault, UsageError, require_type
from ..splitfile.faults import Fault
from ..splits.recipe import JSON, Source
from ..splits.view import SplitView, require_split
from . import SOURCES, Data, Features, load_with
from .label_loading import stream_with
from .label_stream import LabelColumn, write_label_column
from .loading import drop_steps
from .tabular import TABLE

DATA_RULES = (60, 61)  # of docs/format.md, which other data than that of the split breaks


@runtime_checkable
class KeepsData(Protocol):
    """An open split file: keeps the data sets that were opened for it, by their root."""

    data_sets: dict[str | Path | None, Data]


def open_data(split: SplitView, data_root: str | Path | None = None) -> Data:
    """Open the data set that a split is of.

    Labels are read once, features when they are asked for. An open file (`niidpart.open`) keeps the
    data set, so that it is opened once for all parties.

    Parameters
    ----------
    split : FederatedSplit or OpenedSplit
    data_root : str or Path, optional
        Where the data lies. Without it: where the maker of the split had it. An untrusted file
        leads nowhere.

    Returns
    -------
    Data

    Raises
    ------
    UsageError
        The split does not say which data set it is of, or it is none of niidpart's own.
    FileFault
        What lies there cannot be read as that data set.
    FileNotFoundError
        Nothing is there.

    Examples
    --------
    >>> import niidpart
    >>> split = niidpart.make(niidpart.load("digits"), "dir", n_parties=5)
    >>> niidpart.open_data(split).source.n
    1437
    """
    require_split(split)
    if not isinstance(split, KeepsData):
        return load_data_of(split, data_root)
    if data_root not in split.data_sets:
        split.data_sets[data_root] = load_data_of(split, data_root)
    return split.data_sets[data_root]


def load_data_of(split: SplitView, data_root: str | Path | None) -> Data:
    """Return the data set of a split that is known to be one; errors are those of `open_data`."""
    name, params = split.source.name, _params_of(split.source)
    if name in ("array", TABLE):
        what = "an array of labels" if name == "array" else "a table in memory"
        raise UsageError(
            f"the split was made from {what} and does not say where the data is; hand it over "
            "(data=), or make the split of a file, which commands find again"
        )
    if name not in SOURCES.names():
        raise UsageError(
            f"the split is of the data set {name!r}, which is not niidpart's own; "
            "hand it over (data=)"
        )
    if data_root or not split.root:
        return load_with(name, data_root or None, params)
    return _open_where_the_file_says(split.source, params, split.root)


def read_labels_of(split: SplitView, data_root: str | Path | None, folder: Path) -> LabelColumn:
    """Return the labels of the data set of a split in a file of a scratch folder.

    Errors are those of `open_data`.
    """
    name, params = split.source.name, _params_of(split.source)
    if data_root or not split.root:
        return write_label_column(stream_with(name, data_root or None, params), folder)
    _require_openable(name, split.root)
    try:
        return write_label_column(stream_with(name, split.root, params), folder)
    except (OSError, ValueError):
        raise _build_unreadable(name, split.root) from None


def _params_of(source: Source) -> JSON:
    """Return the options to load the source with, of the revision that the split was made of."""
    if source.revision and source.params.get("revision", "") is None:
        return source.params | {"revision": source.revision}  # a cache may hold a newer one
    return source.params


def _open_where_the_file_says(wanted: Source, params: JSON, root: str) -> Data:
    """Open the data at the place that a split's file names.

    Whoever wrote the file chose that place, and a file that somebody fetched is the reader's own as
    well. So only files and folders are opened, and no error says anything of what is in them,
    unless they hold byte for byte what the writer had.
    """
    name = wanted.name
    unreadable = _say_unreadable(name, root)
    SOURCES.complete(name, drop_steps(params))  # says what is wrong with these, which is no secret
    _require_openable(name, root)
    try:
        data = load_with(name, root, params)
        if _is_known_to_writer(wanted, data):
            return data
    except (OSError, ValueError):
        raise _build_unreadable(name, root) from None
    return replace(
        data,
        features=_without_reasons(data.features, unreadable),
        test_features=_without_reasons(data.test_features, unreadable),
        feature_fault=unreadable if data.feature_fault else "",
    )


def _require_openable(name: str, root: str) -> None:
    """Raise FileFault where a place is neither a file nor a folder: a device, a pipe."""
    place = Path(root)
    if place.exists() and not (place.is_file() or place.is_dir()):
        raise FileFault(_say_unreadable(name, root))


def _build_unreadable(name: str, root: str) -> Exception:
    """Return the error for what lies at a place, or does not, that says nothing of its content."""
    if Path(root).exists():
        return FileFault(_say_unreadable(name, root))
    return FileNotFoundError(
        f"there is nothing at {root!a}, where the split's file says it had its data; "
        "say where it is with --data-root (data_root=)"
    )


def _say_unreadable(name: str, root: str) -> str:
    return (
        f"what lies at {root!a} is not, or no longer, the data set {name!r} that the split was "
        "made of: it cannot be read as that. Put back what was there, or make the split again; "
        "named with --data-root (data_root=), it is read with reasons"
    )


def _is_known_to_writer(wanted: Source, data: Data) -> bool:
    """Return whether whoever wrote the split had these very bytes, so that no reason is a secret.

    Names and sizes, which stand for the bytes where checksum is off, can be guessed.
    """
    by_bytes = wanted.params.get("checksum", True) is True
    has_digest = bool(wanted.content_sha256)
    return by_bytes and has_digest and wanted.content_sha256 == data.content_sha256


def _without_reasons(features: Features | None, unreadable: str) -> Features | None:
    """Return features whose errors do not say what was read."""
    if features is None:
        return None

    def read_rows(rows: Ints | slice) -> Array:
        try:
            return features(rows)
        except (OSError, ValueError):
            raise FileFault(unreadable) from None

    return read_rows


def require_data_of(split: SplitView, data: Data) -> None:
    """Raise UsageError for a data set that is not the one the split was made for."""
    faults = compare_sources(split.source, data.source)
    if faults:
        raise UsageError(f"this is not the data of the split: {faults[0].message}")


def source_faults(split: SplitView, data: Data) -> list[Fault]:
    """Return the rules 60 and 61 that a data set breaks: [] for the one the split was made for."""
    require_split(split)
    require_type("data", data, Data, "a data set (niidpart.load, niidpart.from_arrays)")
    return compare_sources(split.source, data.source)


def compare_sources(wanted: Source, got: Source) -> list[Fault]:
    """Return the rules 60 and 61 that a source breaks: [] for the one that is wanted."""
    same_labels = wanted.n == got.n and wanted.labels_sha256 == got.labels_sha256
    if not same_labels or wanted.class_names != got.class_names:
        made_for = f"{wanted.n} labels with sha256 {wanted.labels_sha256[:12]}..."
        these = f"these are {got.n} with {got.labels_sha256[:12]}..."
        return [Fault(60, f"the split was made for {made_for}, {these}")]
    both_known = wanted.content_sha256 and got.content_sha256
    if both_known and wanted.content_sha256 != got.content_sha256:
        differ = f"sha256 {got.content_sha256[:12]}..., not {wanted.content_sha256[:12]}..."
        message = (
            "the labels are those the split was made for, the features or the test set are not "
            f"({differ})"
        )
        return [Fault(61, message)]
    return []
