"""FEMNIST as LEAF writes it (JSON by writer) and as TensorFlow Federated does (HDF5 by writer)."""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
from numpy.typing import NDArray

from ...errors import FileFault, UsageError
from .files import PACKED, open_packed

PIXELS = 28 * 28
_LARGEST = 1 << 27  # bytes of one writer's array; the largest there is has 2 MB
_LARGEST_FILE = (
    1 << 32
)  # bytes of all arrays of a file; the largest there is, the training set of all 62 classes, has 2.1 GB
_INFLATE = 1100  # deflate cannot do more than 1032 : 1


class Written(NamedTuple):
    """Images with their writers: x [n, 28, 28] uint8, or float32 where pixels are no multiples of 1/255; y [n] int64; writer [n] text."""

    x: NDArray[Any]
    y: NDArray[Any]
    writer: NDArray[Any]


def find_json_files(folder: Path) -> list[Path]:
    """The JSON files of a folder, plain or packed, by name."""
    endings = tuple(f".json{end}" for end in PACKED)
    return (
        sorted(
            (p for p in folder.glob("*.json*") if p.name.endswith(endings)), key=lambda p: p.name
        )
        if folder.is_dir()
        else []
    )


def read_json(paths: Sequence[Path]) -> Written:
    """The images of LEAF's files: `users`, and `user_data` with `x` (784 numbers from 0 to 1 an image) and `y` of each; one file at a time."""
    return _joined([images for path in paths for images in _users(path)])


def _users(path: Path) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
    with open_packed(path) as f:
        try:
            held = json.load(f)
            users, data = held["users"], held["user_data"]
            if not isinstance(users, list) or not all(
                isinstance(u, str) and isinstance(data[u], dict) for u in users
            ):
                raise UsageError("'users' are no names of 'user_data'")
            arrays = [
                (u, np.array(data[u]["x"], np.float64), np.array(data[u]["y"])) for u in users
            ]
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
            raise FileFault(
                f"{path} is no JSON of LEAF ({type(error).__name__}: {str(error)[:200]}); fetch or make it again"
            ) from error
    for user, x, y in arrays:
        yield user, *_checked(path, user, x, y)


def read_hdf5(path: Path) -> Written:
    """The images of TensorFlow Federated's file: `examples/<writer>/pixels` [n, 28, 28] float32 and `label` [n]; writers by name."""
    try:
        with h5py.File(path, "r") as f:
            held, left = {}, _LARGEST_FILE
            folder = _linked(f, "examples", h5py.Group)
            for writer in sorted(folder):
                own = _linked(folder, writer, h5py.Group)
                held[writer] = [_linked(own, name, h5py.Dataset) for name in ("pixels", "label")]
                left -= sum(_size(item) for item in held[writer])
                if left < 0:
                    raise TypeError(f"its arrays have more than {_LARGEST_FILE} bytes")
            images = [
                (w, *_checked(path, w, *(np.asarray(item[()]) for item in pair)))
                for w, pair in held.items()
            ]
    except (OSError, RuntimeError, KeyError, TypeError, AttributeError) as error:
        raise FileFault(
            f"{path} is no HDF5 of writers ({type(error).__name__}: {str(error)[:200]}); fetch it again"
        ) from error
    return _joined(images)


def _linked(folder: Any, name: str, kind: type) -> Any:
    """The member of a group. TypeError where it is a link, which would open another file, or of another kind; KeyError where there is none."""
    link = folder.get(name, getlink=True)
    if link is None:
        raise KeyError(f"{folder.name} has no {name!r}")
    if type(link) is not h5py.HardLink:
        raise TypeError(f"{folder.name.rstrip('/')}/{name} is a link")
    item = folder[name]
    if type(item) is not kind:
        raise TypeError(f"{item.name} is no {kind.__name__.lower()}")
    return item


def _size(item: Any) -> int:
    """The bytes that a dataset needs in memory. TypeError where it holds no numbers, lies in another file, or says more than it stores."""
    if item.is_virtual or item.external or item.shape is None or item.dtype.kind not in "fiu":
        raise TypeError(
            f"{item.name} holds {item.dtype} or lies in another file; plain numbers are needed"
        )
    size, stored = math.prod(item.shape) * item.dtype.itemsize, item.id.get_storage_size()
    if size > _LARGEST or size > _INFLATE * stored + 65536:
        raise TypeError(
            f"{item.name} says that it has {size} bytes and stores {stored}; an array has at most {_LARGEST}"
        )
    return int(size)


def _checked(
    path: Path, writer: str, x: NDArray[Any], y: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """(x [n, 28, 28] uint8 where that loses nothing, y [n]) of one writer."""
    if (
        x.ndim == 0
        or x.size != len(x) * PIXELS
        or y.shape != (len(x),)
        or (len(y) and (y.dtype.kind not in "iu" or y.min() < 0 or y.max() > 61))
    ):
        raise FileFault(
            f"{path}: {writer!r} has images {list(x.shape)} and labels {y.dtype}{list(y.shape)}; [n, {PIXELS}] and [n] of 0..61 are needed"
        )
    if not ((x >= 0) & (x <= 1)).all():
        raise FileFault(f"{path}: {writer!r} has pixels outside 0..1")
    grey = np.rint(np.asarray(x, np.float64) * 255)
    return (
        grey.astype(np.uint8) if (np.abs(grey / 255 - x) < 1e-6).all() else x.astype(np.float32)
    ).reshape(-1, 28, 28), y.astype(np.int64)


def _joined(images: Sequence[tuple[str, NDArray[Any], NDArray[Any]]]) -> Written:
    """One array of all; float32 as soon as one writer's images are."""
    if not any(len(y) for _, _, y in images):
        return Written(np.zeros((0, 28, 28), np.uint8), np.zeros(0, np.int64), np.zeros(0, "U1"))
    whole = all(x.dtype == np.uint8 for _, x, _ in images)
    x = np.concatenate(
        [
            a if whole or a.dtype != np.uint8 else a.astype(np.float32) / np.float32(255)
            for _, a, _ in images
        ]
    )
    names = np.array(
        [w for w, _, _ in images], object
    )  # no fixed width: one long name would make all long
    writer = np.repeat(names, [len(y) for _, _, y in images])
    return Written(x, np.concatenate([y for _, _, y in images]), writer)
