"""For Flower: a folder that flwr-datasets reads by party, and a partitioner for data that flwr-datasets loads itself."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np

from ..data import Data, number_classes
from ..errors import UsageError
from ..splits.split import FederatedSplit
from ..splits.view import SplitView
from . import LOSABLE
from ._parquet import Shard, encoded
from ._shared import ABOUT, about, example_bytes, without

__all__ = ["flower", "partitioner"]

HOLDS = frozenset(LOSABLE) - {"columns", "fresh"}
ONLY_OUT = "it is parquet like any other; its columns party and row, written as CSV, can be"
_NAMES = {
    "train": "train",
    "val": "validation",
    "test": "test",
}  # as `datasets` knows them by the name of a file
_SHARD = 256 << 20  # bytes of examples in a file


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
    """Parquet that flwr-datasets reads by party: NaturalIdPartitioner(partition_by="party"). Needs pyarrow; Pillow for images.

    train, validation and test, each with the columns party, row, label, and image (PNG, of uint8 images) or x (lists of numbers; with the split's
    fixed noise, then always floats). features: those too, else labels alone. skip_empty: flwr-datasets counts the parties that it sees, so behind
    one without examples all move up by one; that is refused unless it is allowed here. A row that two parties hold stands there twice.
    niidpart.json says which split it is.
    """
    if (none := without(split, ("train", "val", "test"))) and not skip_empty:
        raise UsageError(
            f"there are no examples at {'; '.join(none)}, and flwr-datasets would give their numbers to the parties behind them; "
            "make the split with a min_size, or allow that with --skip-empty (skip_empty=True)"
        )
    if features and data.features is None:
        raise UsageError(
            "the data has labels but no features; write labels alone with --no-features (features=False)"
        )
    row_bytes = 20 + (example_bytes(split, data) if features else 0)
    most = max(1, _SHARD // row_bytes)
    for name, part in split.parts.items():
        total = -(-part.n // most)
        for i in range(total):
            shard = Shard(
                f"{_NAMES[name]}-{i:05}-of-{total:05}.parquet",
                features,
                name,
                i * most,
                min(part.n, (i + 1) * most),
                row_bytes,
            )
            yield (
                shard.path,
                encoded(split, data if features else replace(data, features=None), shard),
            )
    yield ABOUT, about(split)


def partitioner(
    split: SplitView,
    part: Literal["train", "val", "test"] = "train",
    *,
    label: str | None = "label",
) -> Any:
    """A flwr-datasets `Partitioner` for the data set itself, as `datasets` loads it: partition i is party i, with empty parties in their places.

    label: the data set's column of labels, which is compared with the split's when the first party is asked for; None: it is not. FederatedDataset
    shuffles before it partitions unless told shuffle=False; then rows are others, and that comparison says so. Needs flwr-datasets.
    """
    from flwr_datasets.partitioner import Partitioner

    rows_of = {"train": split.train, "val": split.val, "test": split.test}[part]

    class SplitPartitioner(Partitioner):  # type: ignore[misc]
        """The parties of one split file."""

        def __init__(self) -> None:
            super().__init__()
            self._looked_at = False

        @property
        def num_partitions(self) -> int:
            return split.n_parties

        def load_partition(self, partition_id: int) -> Any:
            if not self._looked_at:
                _same_rows(split, self.dataset, label)
                self._looked_at = True
            return self.dataset.select(rows_of.party(partition_id))

    return SplitPartitioner()


def _same_rows(split: SplitView, dataset: Any, label: str | None) -> None:
    """ValueError where a data set of `datasets` is not the one that the split was made of, row by row, as far as its labels tell."""
    said = "FederatedDataset shuffles the rows unless it is told shuffle=False"
    if len(dataset) != split.source.n:
        raise UsageError(
            f"the split is of {split.source.n} examples, this data set has {len(dataset)}; take its training part, and {said}"
        )
    if label is None:
        return
    if label not in dataset.column_names:
        raise UsageError(
            f"the data set has no column {label!r}; give label= one of {', '.join(dataset.column_names)}, or None to trust its rows"
        )
    ids, _ = number_classes(np.asarray(dataset[label]))
    if (
        hashlib.sha256(np.ascontiguousarray(ids, "<i8").data).hexdigest()
        != split.source.labels_sha256
    ):
        raise UsageError(f"the labels in {label!r} are not those of the split, row by row; {said}")
