"""The digests that name a split: one text for a value, and sha256 over texts and arrays."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .recipe import Recipe, Source

FORMAT_MAJOR = 1  # of the split file; part of every digest of a split


def encode_json(value: Any) -> bytes:
    """Return the one JSON text of a value: sorted keys, no spaces, ASCII, shortest floats.

    NaN and infinity are refused.
    """
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )
    return text.encode("ascii")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digest_array(array: NDArray[Any]) -> str:
    """Return the sha256 over type, shape and little-endian values of an array."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    kind = little.dtype.str.replace("|", "<")
    state = hashlib.sha256(encode_json([kind, list(little.shape)]))
    state.update(little.reshape(-1).view(np.uint8).data)
    return state.hexdigest()


def digest_split(
    recipe: Recipe, source: Source, parts: Mapping[str, str], columns: Mapping[str, NDArray[Any]]
) -> str:
    """Return the digest of a split. parts: the digest of each part by name."""
    whole = {
        "recipe": recipe.to_json(),
        "source": source.to_json(),
        "parts": dict(parts),
        "columns": {name: digest_array(column) for name, column in columns.items()},
        "format": FORMAT_MAJOR,
    }
    return sha256(encode_json(whole))
