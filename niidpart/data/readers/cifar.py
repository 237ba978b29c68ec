"""CIFAR-10 and CIFAR-100 in the two forms that they are published in: pickled batches, as torchvision leaves them, and binary ones."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FileFault
from .cifar_pickle import unpickle_batch

PIXELS = 3 * 32 * 32
CifarBatch = tuple[NDArray[Any], NDArray[Any]]


def read_pickled_batches(paths: Sequence[Path], key: str) -> CifarBatch:
    """(images [n, 32, 32, 3] uint8, labels [n]) of pickled batches, one after the other. key: `labels`, `fine_labels` or `coarse_labels`."""
    return _join([_read_pickled(path, key) for path in paths])


def _read_pickled(path: Path, key: str) -> CifarBatch:
    batch = unpickle_batch(path)
    if "data" not in batch or key not in batch:
        raise FileFault(
            f"{path} holds {', '.join(sorted(batch))[:200] or 'nothing'}; 'data' and {key!r} are needed"
        )
    x, y = batch["data"], batch[key]
    if not isinstance(x, np.ndarray) or x.ndim != 2 or x.shape[1] != PIXELS:
        raise FileFault(
            f"{path}: 'data' is {x.shape if isinstance(x, np.ndarray) else type(x).__name__}; uint8 [n, {PIXELS}] is needed"
        )
    if isinstance(y, np.ndarray):
        y = y.tolist()
    if (
        not isinstance(y, list)
        or len(y) != len(x)
        or not all(type(k) is int and 0 <= k < 100 for k in y)
    ):
        raise FileFault(f"{path}: {key!r} is not a class number for each of the {len(x)} images")
    return _shape_images(x), np.array(y, np.int64)


def read_binary_batches(paths: Sequence[Path], n_label_bytes: int, which: int) -> CifarBatch:
    """(images [n, 32, 32, 3] uint8, labels [n]) of binary batches: for each image its label bytes, of which `which` counts, then its pixels."""
    return _join([_read_binary(path, n_label_bytes, which) for path in paths])


def _read_binary(path: Path, n_label_bytes: int, which: int) -> CifarBatch:
    raw, row = np.fromfile(path, np.uint8), n_label_bytes + PIXELS
    if not len(raw) or len(raw) % row:
        raise FileFault(
            f"{path} has {len(raw)} bytes, which is no whole number of images of {row}; fetch it again"
        )
    rows = raw.reshape(-1, row)
    return _shape_images(rows[:, n_label_bytes:]), rows[:, which].astype(np.int64)


def read_class_names(path: Path, key: str) -> list[str]:
    """Class names: of a pickled dict under `key`, or of a text file, one a line."""
    if path.suffix == ".txt":
        return path.read_text("utf-8", "replace").split()
    names = unpickle_batch(path).get(key)
    names = (
        [n.decode("latin1") if isinstance(n, bytes) else n for n in names]
        if isinstance(names, list)
        else []
    )
    if not names or not all(isinstance(n, str) for n in names):
        raise FileFault(f"{path} has no list of names {key!r}; fetch it again")
    return names


def _shape_images(rows: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _join(batches: Sequence[CifarBatch]) -> CifarBatch:
    return np.concatenate([x for x, _ in batches]), np.concatenate([y for _, y in batches])
