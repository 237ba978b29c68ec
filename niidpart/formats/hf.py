"""The layout of a data set on the Hugging Face Hub: parquet files, the split file, and a card that says how they belong together."""

import hashlib
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import numpy as np

from ..data import Data
from ..data.of_split import source_faults
from ..errors import UsageError
from ..splitfile.writing import to_bytes
from ..splits.digests import encode_json
from ..splits.split import FederatedSplit
from . import LOSABLE
from ._card import Config, Files, card, config_name
from ._parquet import GLOBAL, Shard, parquet, table

__all__ = ["hf", "shards"]

HOLDS = frozenset(LOSABLE)  # split.h5 stands beside the tables
ONLY_OUT = "split.h5 in its folder is the split; use that file as it is, and `niidpart pull` gets it from the Hub"
SPLIT, PICTURE, CARD = "split.h5", "split.png", "README.md"
_SHARD = 256 << 20  # bytes of features in a file


def hf(
    split: FederatedSplit,
    data: Data | None,
    *,
    repo: Annotated[str, "USER/NAME on the Hub, for the card's examples."] = "",
    include_data: Annotated[
        bool | None,
        "The examples too; in python they go along wherever the data is handed over, unless this is false.",
    ] = None,
) -> Iterator[tuple[str, bytes]]:
    """Parquet files and a card, for the Hugging Face Hub and `datasets`. Needs pyarrow; Pillow for images, matplotlib for the card's picture.

    Configuration NAME: a row for each example that a party holds: `party` int32, `row` int64 of the data set; splits train, val and test. With
    the examples also NAME-data: the same rows with `label` and `image` (PNG; of uint8 images) or `x` (lists of numbers; the split's fixed
    transforms applied, then always floats), and the split `global_test`, the data set's own test set, with party -1 and rows of that set.
    The split file stands beside them, without the hint of where the data was. include_data: None for the examples where `data` is given.
    repo: USER/NAME, for the card's examples. ValueError where the data is not that of the split, or is wanted and missing.
    """
    if include_data and data is None:
        raise UsageError(
            "include_data says that the examples are to go along; hand over the data set"
        )
    split, data = replace(split, root=""), None if include_data is False else data
    files = shards(split, data)
    configs: dict[str, Config] = {}
    for shard in files:
        rows, features = table(split, data if shard.with_data else None, shard)
        content = parquet(rows, shard)
        yield shard.path, content
        name = config_name(split) + ("-data" if shard.with_data else "")
        config = configs.setdefault(name, Config(name, shard.with_data, features, {}))
        config.parts.setdefault(shard.part, Files()).add(
            shard.path, len(rows), rows.nbytes, len(content)
        )
    yield SPLIT, to_bytes(split)
    picture = find_spec("matplotlib") is not None
    if picture:
        yield PICTURE, _picture(split)
    yield (
        CARD,
        card(
            split,
            list(configs.values()),
            repo=repo,
            picture=PICTURE if picture else "",
            split_file=SPLIT,
        ).encode(),
    )


def shards(split: FederatedSplit, data: Data | None) -> list[Shard]:
    """The parquet files of a split, by paths that name what is in them: the same path never holds something else, so no cache goes stale."""
    if not split.train.n:
        raise UsageError("no party holds a training example; there is nothing to publish")
    sizes = {name: part.n for name, part in split.parts.items() if part.n}
    found = _sharded(config_name(split), split.digest[:16], sizes, 12, False)
    if data is None:
        return found
    if faults := source_faults(split, data):
        raise UsageError(f"another data set: {faults[0].message}")
    if data.features is None:
        raise UsageError(
            "the examples are to go along, and this data set has labels alone; leave the data out"
        )
    if data.test_features is not None and data.test_labels is not None and len(data.test_labels):
        sizes[GLOBAL] = len(data.test_labels)
    one = data.features(np.zeros(1, np.int64))
    size = one.size * (4 if split.recipe.transforms else one.itemsize)
    print_ = hashlib.sha256(
        encode_json([split.digest, data.source.content_sha256, one.dtype.str, list(one.shape[1:])])
    ).hexdigest()[:16]
    return found + _sharded(f"{config_name(split)}-data", print_, sizes, 12 + 8 + size, True)


def _sharded(
    config: str, fingerprint: str, sizes: dict[str, int], row_bytes: int, with_data: bool
) -> list[Shard]:
    found, most = [], max(1, _SHARD // row_bytes)
    for part, n in sizes.items():
        total = -(-n // most)
        for i in range(total):
            path = f"{config}/{part}-{fingerprint}-{i:05}-of-{total:05}.parquet"
            found.append(Shard(path, with_data, part, i * most, min(n, (i + 1) * most), row_bytes))
    return found


def _picture(split: FederatedSplit) -> bytes:
    """The heat map, for a screen."""
    from ..plot import save

    with tempfile.TemporaryDirectory(prefix="niidpart-hf-") as scratch:
        return save(split, Path(scratch) / PICTURE).read_bytes()
