"""PFLlib's folder: an archive a party for training and one for testing, and config.json."""

import io
import json
from collections.abc import Iterator
from typing import Annotated

import numpy as np

from ..data import Data
from ..errors import UsageError
from ..features.examples import read_examples
from ..splits.split import FederatedSplit
from . import LOSABLE
from ._shared import ABOUT, about, without

__all__ = ["pfllib"]

HOLDS = frozenset(LOSABLE) - {"val", "columns", "fresh", "precision"}
ONLY_OUT = "its archives hold pickles, which run any program when they are read, and no data set of niidpart reads them"
_PARTITIONS = {"dir": "dir", "dir-balanced": "dir", "labels": "pat", "shards": "pat"}


def pfllib(
    split: FederatedSplit,
    data: Data,
    *,
    allow_empty: Annotated[
        bool, "Allow parties without examples, and no test parts at all."
    ] = False,
) -> Iterator[tuple[str, bytes]]:
    """PFLlib's train/I.npz and test/I.npz, and config.json. Zhang et al., JMLR 2025.

    In each archive a pickled dict of x (float32, channels first, images in 0..1) and y (class ids). test is the parties' own test parts; PFLlib
    tests at every party, so a split without them, or a party without examples, is refused unless allow_empty. PFLlib's own generators scale images
    to -1..1; here they are as everywhere in niidpart. Reading needs a numpy like the one that wrote (1.26 or later for files of numpy 2).
    niidpart.json says which split it is, with the names of the classes.
    """
    if not split.test.n and not allow_empty:
        raise UsageError(
            "PFLlib tests at every party, and this split has no test parts; make it with --test 0.25, or say --allow-empty"
        )
    if (none := without(split, ("train", "test"))) and not allow_empty:
        raise UsageError(
            f"PFLlib cannot do with parties without examples, and there are none at {'; '.join(none)}; say --allow-empty to write them"
        )
    for name in ("train", "test"):
        for p in range(split.n_parties):
            yield f"{name}/{p}.npz", _archive(split, data, name, p)
    yield "config.json", json.dumps(_config(split)).encode()
    yield ABOUT, about(split)


def _archive(split: FederatedSplit, data: Data, part: str, party: int) -> bytes:
    x, y, _ = read_examples(split, data, party, part, lossy=True)
    x = x.astype(np.float32) / np.float32(255) if x.dtype == np.uint8 else x.astype(np.float32)
    if x.ndim == 3:  # [n, H, W]
        x = x[:, None]
    elif x.ndim == 4:  # [n, H, W, C]
        x = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    out = io.BytesIO()
    held = np.empty((), object)
    held[()] = {"x": x, "y": y}
    np.savez_compressed(out, data=held)
    return out.getvalue()


def _config(split: FederatedSplit) -> dict[str, object]:
    """What PFLlib's generators note of a folder."""
    counts = split.train.counts.astype(np.int64) + split.test.counts
    sizes = split.train.sizes + split.test.sizes
    beta = split.recipe.params.get("beta")
    return {
        "num_clients": split.n_parties,
        "num_classes": len(split.source.class_names),
        "non_iid": split.recipe.strategy != "homo",
        "balance": bool(sizes.max() - sizes.min() <= 1),
        "partition": _PARTITIONS.get(split.recipe.strategy, split.recipe.strategy),
        "Size of samples for labels in clients": [
            [[k, int(n)] for k, n in enumerate(row) if n] for row in counts.tolist()
        ],
        "alpha": beta if isinstance(beta, float) else None,
        "batch_size": 10,
    }
