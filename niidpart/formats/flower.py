"""For Flower: a folder that flwr-datasets reads by party, and a partitioner for data of its own."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from ..data import Data, number_classes
from ..errors import UsageError
from ..splits.split import FederatedSplit
from ..splits.view import SplitView
from . import LOSABLE, Format, Imported
from ._about import ABOUT, encode_about, read_about
from ._parquet import cut_shards, encode_shard
from ._parquet_rows import find_parquet_files, import_parquet
from ._party_files import describe_empty_parties, measure_example
from ._party_rows import PartyColumn, RowColumn

__all__ = ["flower", "partitioner"]

# `datasets` knows which part a file belongs to by these names.
_NAMES = {"train": "train", "val": "validation", "test": "test"}
_HOLDER_BYTES = 4 + 8 + 8  # party, row and label of an example


def flower(
    split: FederatedSplit,
    data: Data,
    *,
    features: Annotated[bool, "The features too; else labels alone."] = True,
    skip_empty: Annotated[
        bool,
        "Allow parties without examples, behind which flwr-datasets moves all others up by one.",
    ] = False,
) -> Iterator[tuple[str, bytes]]:
    """Parquet that flwr-datasets reads by party: NaturalIdPartitioner(partition_by="party").
    Needs pyarrow; Pillow for images.

    train, validation and test each have the columns party, row, label, and image (PNG, of uint8
    images) or x (lists of numbers; with the split's fixed noise, then always floats). A row that
    two parties hold stands there twice. niidpart.json says which split it is.

    Parameters
    ----------
    split : FederatedSplit
    data : Data
    features : bool
        The features too; else labels alone.
    skip_empty : bool
        flwr-datasets counts the parties that it sees, so behind one without examples all move up
        by one. That is refused unless it is allowed here.

    Yields
    ------
    (path, content) : (str, bytes)

    Raises
    ------
    UsageError
        Parties have no examples, or the data has no features.

    Examples
    --------
    >>> import niidpart
    >>> split = niidpart.make(niidpart.load("digits"), strategy="homo", n_parties=2)
    >>> [path for path, content in flower(split, niidpart.load("digits"), features=False)]
    ['train-00000-of-00001.parquet', 'niidpart.json']
    """
    empty = describe_empty_parties(split, ("train", "val", "test"))
    if empty and not skip_empty:
        raise UsageError(
            f"there are no examples at {empty}, and flwr-datasets would give their numbers to the "
            "parties behind them; make the split with a min_size, or allow that with "
            "--skip-empty (skip_empty=True)"
        )
    if features and data.features is None:
        raise UsageError(
            "the data has labels but no features; write labels alone with --no-features "
            "(features=False)"
        )
    shown = data if features else replace(data, features=None)
    row_bytes = _HOLDER_BYTES + (measure_example(split, data) if features else 0)
    for name, part in split.parts.items():
        path = _NAMES[name] + "-{i:05}-of-{total:05}.parquet"
        for shard in cut_shards(path, name, part.n, row_bytes=row_bytes, with_data=features):
            yield shard.path, encode_shard(split, shown, shard)
    yield ABOUT, encode_about(split)


def partitioner(
    split: SplitView,
    part: Literal["train", "val", "test"] = "train",
    *,
    label: str | None = "label",
) -> Any:
    """Return a flwr-datasets `Partitioner` for the data set itself, as `datasets` loads it.

    Partition i is party i, with empty parties in their places. Needs flwr-datasets.

    FederatedDataset shuffles before it partitions unless told shuffle=False; then rows are others,
    and the comparison of the labels says so.

    Parameters
    ----------
    split : FederatedSplit or OpenedSplit
    part : {"train", "val", "test"}
    label : str or None
        The data set's column of labels, which is compared with the split's when the first party is
        asked for. None: nothing is compared.

    Returns
    -------
    flwr_datasets.partitioner.Partitioner

    Raises
    ------
    UsageError
        When the first party is asked for: the data set has other rows than the split.

    Examples
    --------
    >>> import datasets, niidpart
    >>> from niidpart.formats.flower import partitioner
    >>> rows = partitioner(niidpart.make([0, 1] * 50, strategy="homo", n_parties=2))
    >>> rows.dataset = datasets.Dataset.from_dict({"label": [0, 1] * 50})
    >>> rows.num_partitions, len(rows.load_partition(0))
    (2, 50)
    """
    from flwr_datasets.partitioner import Partitioner

    rows = split.parts[part]

    class SplitPartitioner(Partitioner):  # type: ignore[misc]
        """The parties of one split file."""

        def __init__(self) -> None:
            super().__init__()
            self._is_compared = False

        @property
        def num_partitions(self) -> int:
            return split.n_parties

        def load_partition(self, partition_id: int) -> Any:
            if not self._is_compared:  # once: it reads all labels
                _require_same_rows(split, self.dataset, label)
                self._is_compared = True
            return self.dataset.select(rows.party(partition_id))

    return SplitPartitioner()


def _require_same_rows(split: SplitView, dataset: Any, label: str | None) -> None:
    """Raise UsageError where a data set of `datasets` is not the one that the split was made of.

    It is compared row by row, as far as its labels tell.
    """
    hint = "FederatedDataset shuffles the rows unless it is told shuffle=False"
    if len(dataset) != split.source.n:
        raise UsageError(
            f"the split is of {split.source.n} examples, this data set has {len(dataset)}; take "
            f"its training part, and {hint}"
        )
    if label is None:
        return
    if label not in dataset.column_names:
        raise UsageError(
            f"the data set has no column {label!r}; give label= one of "
            f"{', '.join(dataset.column_names)}, or None to trust its rows"
        )
    labels, _ = number_classes(np.asarray(dataset[label]))
    found = hashlib.sha256(np.ascontiguousarray(labels, "<i8").data).hexdigest()
    if found != split.source.labels_sha256:
        raise UsageError(f"the labels in {label!r} are not those of the split, row by row; {hint}")


def read(
    folder: Path,
    data: Data | None,
    *,
    party_column: PartyColumn = "party",
    row_column: RowColumn = "row",
) -> Imported:
    """Parquet with a column of parties, as flwr-datasets and its NaturalIdPartitioner read it: a
    folder with train-*.parquet, validation-*.parquet, test-*.parquet, or one file. Needs pyarrow.

    A column `label` has to have the classes that the data set has.

    Parameters
    ----------
    folder : Path
        The folder, or the file.
    data : Data or None
        The data set whose rows the files name.
    party_column : str
        Whole numbers from 0, or names, which are numbered in sorted order (client_2 before
        client_10) and kept as the party column `party_name`.
    row_column : str
        Rows of the data set from 0. A file without that column has a line for each example.

    Returns
    -------
    Imported

    Raises
    ------
    UsageError
        There is no column of parties.
    FileFault
        The files are no tables of rows by party.
    """
    found = import_parquet(folder, data, party_column=party_column, row_column=row_column)
    return found._replace(about=read_about(folder) if folder.is_dir() else {})


def recognise(path: Path) -> str:
    """Return what the file or folder is, "" where it is no parquet."""
    return "parquet, as flwr-datasets reads it" if find_parquet_files(path) else ""


ENTRY = Format(
    write=flower,
    read=read,
    holds=frozenset(LOSABLE) - {"columns", "fresh"},
    needs_data=True,
    read_needs_data=True,
    recognise=recognise,
)
