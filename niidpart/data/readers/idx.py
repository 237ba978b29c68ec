"""The idx files of the MNIST family, in the folders that torchvision leaves on a disk."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FileFault
from .. import Data, from_arrays
from .files import build_not_found, find_all_files, open_packed, require_published_counts

_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
_LARGEST = 1 << 34  # bytes of one file; the largest there is, EMNIST by class, has 0.5 GB


def load_mnist_like(root: str | Path, folder: str, any_size: bool) -> Data:
    """Four idx files (plain or packed) under `root`, `root/raw`, `root/<folder>` or `root/<folder>/raw`.

    ValueError where they do not hold 60,000 and 10,000 images, unless any_size: so many have MNIST, FashionMNIST (Li et al., ICDE 2022, Table II)
    and KMNIST (Clanuwat et al., 2018).
    """
    places = [Path(root) / folder / "raw", Path(root) / folder, Path(root) / "raw", Path(root)]
    arrays = read_idx_files(places, _FILES)
    if arrays is None:
        get = f"python -c \"from torchvision.datasets import {folder}; {folder}('{root}', download=True)\""
        raise build_not_found(folder, [f"{_FILES[0]}[.gz] and its three companions"], places, get)
    require_published_counts(
        folder,
        (len(arrays[1]), len(arrays[3])),
        (60_000, 10_000),
        ("training images", "test images"),
        any_size,
    )
    return from_arrays(*arrays)


def read_idx_files(places: Sequence[Path], names: Sequence[str]) -> list[NDArray[Any]] | None:
    """The arrays of these files, from the first place that has them all."""
    found = find_all_files(places, names)
    return None if found is None else [_read(path) for path in found]


def _read(path: Path) -> NDArray[Any]:
    """[N] or [N, H, W] uint8: two zero bytes, the type (8: uint8), the number of axes, their lengths as big-endian uint32, the values."""
    with open_packed(path) as f:
        head = f.read(4)
        sizes = f.read(4 * head[3]) if len(head) == 4 else b""
        if head[:3] != b"\0\0\x08" or len(head) < 4 or not sizes or len(sizes) < 4 * head[3]:
            raise FileFault(
                f"{path} is no idx file of uint8 (it begins with {(head + sizes)[:4].hex()}); fetch it again"
            )
        shape = np.frombuffer(sizes, ">u4").tolist()
        n = math.prod(shape)
        if n > _LARGEST:
            raise FileFault(
                f"{path} says {shape}, which is {n} values; no such file has more than {_LARGEST}; fetch it again"
            )
        values = f.read(
            n + 1
        )  # one more than there may be: also brings an archive to its end, where its checksum is
    if len(values) != n:
        raise FileFault(
            f"{path} says {shape} and holds {'more' if len(values) > n else len(values)} values; fetch it again"
        )
    return np.frombuffer(values, np.uint8).reshape(shape)
