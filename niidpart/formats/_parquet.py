"""Tables of examples as parquet files that `datasets` reads: which party holds which row, and what is in it."""

from collections.abc import Iterator
from io import BytesIO
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..data import Data
from ..features.arrow_table import encode_features, name_kinds
from ..features.transforming import transform
from ..splits.split import FederatedSplit

GLOBAL = "global_test"  # the data set's own test set, which is no party's
_GROUP, _BLOCK = 8 << 20, 4 << 20  # bytes of features: of a row group, that are worked on at once


class Shard(NamedTuple):
    """A parquet file. rows start..stop of a part, whose examples stand party by party. row_bytes: what one takes before it is packed."""

    path: str
    with_data: bool
    part: str
    start: int
    stop: int
    row_bytes: int


def encoded(split: FederatedSplit, data: Data | None, shard: Shard) -> bytes:
    """The parquet file of a shard: `party` and `row`; of `data` also `label` and, where it has features, these."""
    return parquet(table(split, data, shard)[0], shard)


def table(
    split: FederatedSplit, data: Data | None, shard: Shard
) -> tuple[Any, list[tuple[str, Any]]]:
    """(the pyarrow table of a shard, its features as (name, kind)). A kind is a type's name, "image", a list [kind], or {"class_label": names}."""
    import pyarrow as pa

    party, row = _holders(split, shard)
    columns: dict[str, Any] = {"party": pa.array(party), "row": pa.array(row)}
    features: list[tuple[str, Any]] = [("party", "int32"), ("row", "int64")]
    if data is not None:
        labels = data.test_labels if shard.part == GLOBAL else data.labels
        assert labels is not None
        columns["label"] = pa.array(labels[row])
        features.append(("label", {"class_label": list(split.source.class_names)}))
    if data is not None and data.features is not None:
        chunks, kinds = [], []
        for block in _seen(split, data, shard, party, row):
            chunk, kind = encode_features(block)
            chunks.append(chunk)
            kinds.append(kind)
        name = "image" if kinds[0] == "image" else "x"
        columns[name] = pa.chunked_array(chunks)
        features.append((name, kinds[0]))
    return name_kinds(pa.table(columns), dict(features)), features


def _holders(split: FederatedSplit, shard: Shard) -> tuple[NDArray[np.int32], Ints]:
    """(party, row) of each example of a shard."""
    if shard.part == GLOBAL:
        return np.full(shard.stop - shard.start, -1, np.int32), np.arange(shard.start, shard.stop)
    part = split.parts[shard.part]
    ends = np.clip(part.indptr, shard.start, shard.stop)
    return np.repeat(np.arange(split.n_parties, dtype=np.int32), np.diff(ends)), part.indices[
        shard.start : shard.stop
    ].astype(np.int64)


def _seen(
    split: FederatedSplit, data: Data, shard: Shard, party: NDArray[np.int32], row: Ints
) -> Iterator[NDArray[Any]]:
    """Features as the parties see them, a block at a time and, where the split has transforms, a party at a time."""
    step = max(1, _BLOCK // shard.row_bytes)
    cuts = (
        [0, *(np.flatnonzero(np.diff(party)) + 1).tolist(), len(row)]
        if split.recipe.transforms
        else [0, len(row)]
    )
    read = data.test_features if shard.part == GLOBAL else data.features
    assert read is not None
    for first, last in pairwise(cuts):
        for start in range(first, last, step):
            rows = row[start : min(start + step, last)]
            block = read(rows)
            if (
                split.recipe.transforms and shard.part == GLOBAL
            ):  # no party's: without noise, but on the same scale
                yield block.astype(np.float32) / np.float32(255 if block.dtype == np.uint8 else 1)
            else:
                yield transform(split, block, int(party[start]), rows)


def parquet(of: Any, shard: Shard) -> bytes:
    import pyarrow.parquet as pq

    sink = BytesIO()
    pq.write_table(of, sink, compression="zstd", row_group_size=max(1, _GROUP // shard.row_bytes))
    return sink.getvalue()
