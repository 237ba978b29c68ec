"""Parquet files as one table: columns one by one, rows by the row groups that hold them."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...arithmetic.rng import Ints
from ...errors import FileFault

_SHARD = re.compile(r"^(.*)-(\d{5})-of-(\d{5})(\.\w+)$")


class ParquetTable:
    """The rows of several files, one after the other."""

    def __init__(self, files: Sequence[Path], described: Mapping[str, Any] | None = None):
        self.files = list(files)
        require_all_shards(self.files)
        heads = [self._head(path) for path in self.files]
        if other := [
            path
            for path, (_, schema) in zip(self.files, heads, strict=True)
            if not schema.equals(heads[0][1])
        ]:
            raise FileFault(f"{other[0]} has other columns than {self.files[0]}")
        self.schema = heads[0][1]
        self.groups = [
            (path, i, size)
            for path, (sizes, _) in zip(self.files, heads, strict=True)
            for i, size in enumerate(sizes)
        ]
        self.n = sum(size for _, _, size in self.groups)
        if not self.n:
            raise FileFault(f"{self.files[0]} holds no rows")
        self.described = described or read_described(self.schema)

    @staticmethod
    def _head(path: Path) -> tuple[list[int], Any]:
        with _faults(path) as pq, pq.ParquetFile(path) as file:
            return [
                file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)
            ], file.schema_arrow

    def column(self, name: str) -> Any:
        """The whole column; text by its distinct values, as it is stored."""
        import pyarrow as pa

        kind = self.schema.field(name).type
        text = [name] if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None
        parts = []
        for path in self.files:
            with _faults(path) as pq, pq.ParquetFile(path, read_dictionary=text) as file:
                parts.append(file.read(columns=[name]).column(name))
        column = pa.chunked_array(
            [chunk for part in parts for chunk in part.chunks], type=parts[0].type
        )
        if len(column) != self.n:
            raise FileFault(
                f"{self.files[0]} says that it has {self.n} rows and holds {len(column)}"
            )
        return column

    @cached_property
    def _starts(self) -> Ints:
        return np.cumsum([0, *(size for _, _, size in self.groups)])

    def batches(self, rows: Ints, columns: Sequence[str]) -> Iterator[tuple[Ints, Any]]:
        """(places in `rows`, a table of these rows), a row group at a time; each is read once."""
        import pyarrow as pa

        order = np.argsort(rows, kind="stable")
        cuts = np.searchsorted(rows[order], self._starts)
        for (path, i, _), start, low, high in zip(
            self.groups, self._starts[:-1], cuts[:-1], cuts[1:], strict=True
        ):
            if low < high:
                places = order[low:high]
                with _faults(path) as pq, pq.ParquetFile(path) as file:
                    group = file.read_row_group(i, columns=list(columns))
                    yield places, group.select(list(columns)).take(pa.array(rows[places] - start))


class _faults:
    """Gives pyarrow.parquet; what that finds wrong in a file is a FileFault that names it."""

    def __init__(self, path: Path):
        self._path = path

    def __enter__(self) -> Any:
        import pyarrow.parquet

        return pyarrow.parquet

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        import pyarrow as pa

        if isinstance(error, FileFault) or (isinstance(error, OSError) and error.errno is not None):
            return
        if isinstance(error, pa.ArrowException | OSError | MemoryError):
            raise FileFault(
                f"{self._path} cannot be read as parquet ({str(error).strip()[:200]}); fetch or write it again"
            ) from error


def read_described(schema: Any) -> Mapping[str, Any]:
    """The features of a schema that `datasets` wrote: names of classes, which columns are images."""
    try:
        features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))["info"][
            "features"
        ]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return features if isinstance(features, dict) else {}


def require_all_shards(files: Sequence[Path]) -> None:
    """FileFault where files are shards (`train-00000-of-00005.parquet`) and some of them are missing: a download that was cut off."""
    found: dict[tuple[str, str], set[int]] = {}
    for path in files:
        if shard := _SHARD.match(path.name):
            found.setdefault((str(path.parent / shard[1]), shard[3]), set()).add(int(shard[2]))
    for (start, total), there in found.items():
        if missing := sorted(set(range(int(total))) - there):
            raise FileFault(
                f"{start}-{missing[0]:05}-of-{total} is missing ({len(there)} of {int(total)} shards are there); fetch the data set again"
            )
