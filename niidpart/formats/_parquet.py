"""Tables of examples as parquet files that `datasets` reads."""

from collections.abc import Iterator
from io import BytesIO
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..data import Data
from ..features.arrow_table import FeatureKind, encode_features, name_kinds
from ..features.relabelling import RELABELLED, relabel_parties
from ..features.transforming import list_feature_steps, transform
from ..splits.split import FederatedSplit

GLOBAL = "global_test"  # the data set's own test set, which no party holds
SHARD_BYTES = 256 << 20  # bytes of examples in a file
_GROUP_BYTES = 8 << 20  # of features in a row group, which is read at once
_BLOCK_BYTES = 4 << 20  # of features that are worked on at once

Holders = NDArray[np.int32]


class Shard(NamedTuple):
    """A parquet file.

    It has the rows start..stop of a part, whose examples stand party by party. row_bytes: what one
    takes before it is packed.
    """

    path: str
    with_data: bool
    part: str
    start: int
    stop: int
    row_bytes: int


def cut_shards(
    path: str,
    part: str,
    n: int,
    *,
    row_bytes: int,
    with_data: bool,
) -> Iterator[Shard]:
    """Yield the files of the n rows of a part, each of at most SHARD_BYTES.

    path: of the files; {i:05} and {total:05} in it are their number and how many there are.
    """
    rows = max(1, SHARD_BYTES // row_bytes)
    total = -(-n // rows)
    for i in range(total):
        yield Shard(
            path=path.format(i=i, total=total),
            with_data=with_data,
            part=part,
            start=i * rows,
            stop=min(n, (i + 1) * rows),
            row_bytes=row_bytes,
        )


def encode_shard(split: FederatedSplit, data: Data | None, shard: Shard) -> bytes:
    """Return the parquet file of a shard.

    It has the columns `party` and `row`; of `data` also `label` and, where it has any, features.
    """
    table, _ = build_table(split, data, shard)
    return encode_parquet(table, shard)


def build_table(
    split: FederatedSplit, data: Data | None, shard: Shard
) -> tuple[Any, dict[str, FeatureKind]]:
    """Return the pyarrow table of a shard, and the kinds of its columns."""
    import pyarrow as pa

    party, row = _list_holders(split, shard)
    columns: dict[str, Any] = {"party": pa.array(party), "row": pa.array(row)}
    kinds: dict[str, FeatureKind] = {"party": "int32", "row": "int64"}
    if data is not None:
        labels = data.test_labels if shard.part == GLOBAL else data.labels
        assert labels is not None  # there is a shard of the test set only where it has labels
        y = labels[row]
        if shard.part in RELABELLED:
            starts = _list_starts(party)
            y = relabel_parties(split, y, row, party[starts[:-1]].tolist(), starts)
        columns["label"] = pa.array(y)
        kinds["label"] = {"class_label": list(split.source.class_names)}
    if data is not None and data.features is not None:
        blocks = _read_blocks(split, data, shard, party, row)
        chunks, chunk_kinds = zip(*map(encode_features, blocks), strict=True)
        kind = chunk_kinds[0]
        name = "image" if kind == "image" else "x"
        columns[name] = pa.chunked_array(chunks)
        kinds[name] = kind
    return name_kinds(pa.table(columns), kinds), kinds


def _list_holders(split: FederatedSplit, shard: Shard) -> tuple[Holders, Ints]:
    """Return (party, row) of each example of a shard; the party of the global test set is -1."""
    if shard.part == GLOBAL:
        nobody = np.full(shard.stop - shard.start, -1, np.int32)
        return nobody, np.arange(shard.start, shard.stop)
    part = split.parts[shard.part]
    ends = np.clip(part.indptr, shard.start, shard.stop)
    party = np.repeat(np.arange(split.n_parties, dtype=np.int32), np.diff(ends))
    return party, part.indices[shard.start : shard.stop].astype(np.int64)


def _read_blocks(
    split: FederatedSplit,
    data: Data,
    shard: Shard,
    party: Holders,
    row: Ints,
) -> Iterator[NDArray[Any]]:
    """Yield features as the parties see them, a block at a time.

    Where features are transformed, a block is of one party.
    """
    cuts = _list_starts(party) if list_feature_steps(split.recipe) else [0, len(row)]
    step = max(1, _BLOCK_BYTES // shard.row_bytes)
    for first, last in pairwise(cuts):
        for start in range(first, last, step):
            rows = row[start : min(start + step, last)]
            yield _read_block(split, data, shard, int(party[start]), rows)


def _list_starts(party: Holders) -> list[int]:
    """Return where the rows of each party begin, and where the last one's end."""
    changes = np.flatnonzero(np.diff(party)) + 1
    return [0, *changes.tolist(), len(party)]


def _read_block(
    split: FederatedSplit,
    data: Data,
    shard: Shard,
    party: int,
    rows: Ints,
) -> NDArray[Any]:
    if shard.part != GLOBAL:
        assert data.features is not None
        return transform(split, data.features(rows), party, rows)
    assert data.test_features is not None
    block = data.test_features(rows)
    if not list_feature_steps(split.recipe):
        return block
    # No party's, so without noise, but on the scale of what the parties see.
    return block.astype(np.float32) / np.float32(255 if block.dtype == np.uint8 else 1)


def encode_parquet(table: Any, shard: Shard) -> bytes:
    import pyarrow.parquet

    sink = BytesIO()
    group = max(1, _GROUP_BYTES // shard.row_bytes)
    pyarrow.parquet.write_table(table, sink, compression="zstd", row_group_size=group)
    return sink.getvalue()
