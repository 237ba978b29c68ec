"""Features as Arrow columns, typed so that `datasets` knows images and classes again.

The functions import pyarrow when they are called.
"""

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .transforming import to_native

__all__ = ["FeatureKind", "encode_features", "name_kinds"]

# The type of a column: the name of a type, "image", [kind of the items], or {"class_label": names}.
FeatureKind: TypeAlias = str | list[Any] | dict[str, list[str]]


def encode_features(x: NDArray[Any]) -> tuple[Any, FeatureKind]:
    """Return the pyarrow array [n] of features x [n, ...], and its kind.

    uint8 of two axes or more are images, as PNG; anything else are lists of numbers, nested as the
    axes are.
    """
    import pyarrow as pa

    x = to_native(x)
    if x.dtype == np.uint8 and x.ndim > 2:
        # The fields that `datasets` gives its images; no path, since they are in no file.
        image_type = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        images = [{"bytes": _encode_png(image), "path": None} for image in x]
        return pa.array(images, image_type), "image"
    column = pa.array(np.ascontiguousarray(x).reshape(-1))
    kind: FeatureKind = x.dtype.name
    for size in x.shape[:0:-1]:  # the last axis is the innermost list
        offsets = np.arange(0, len(column) + 1, size, dtype=np.int32)
        column = pa.ListArray.from_arrays(offsets, column)
        kind = [kind]
    return column, kind


def _encode_png(image: NDArray[np.uint8]) -> bytes:
    from PIL import Image

    is_grey = image.ndim == 3 and image.shape[-1] == 1
    buffer = BytesIO()
    Image.fromarray(image[..., 0] if is_grey else image).save(buffer, "png")
    return buffer.getvalue()


def name_kinds(table: Any, kinds: Mapping[str, FeatureKind]) -> Any:
    """Return the pyarrow table with the kinds of its columns in the metadata of its schema.

    It is the key that `datasets` writes into its own parquet files.
    """
    features = {name: _describe_kind(kind) for name, kind in kinds.items()}
    metadata = json.dumps({"info": {"features": features}})
    return table.replace_schema_metadata({"huggingface": metadata})


def _describe_kind(kind: FeatureKind) -> dict[str, Any]:
    """Return a kind as `datasets` writes it."""
    if isinstance(kind, list):
        return {"feature": _describe_kind(kind[0]), "_type": "List"}
    if isinstance(kind, dict):
        return {"names": kind["class_label"], "_type": "ClassLabel"}
    if kind == "image":
        return {"_type": "Image"}
    return {"dtype": kind, "_type": "Value"}
