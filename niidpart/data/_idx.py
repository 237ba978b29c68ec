"""The idx files of the MNIST family, in the folders that torchvision leaves on a disk."""

import gzip
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import Data, from_arrays

_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def mnist_like(root: str | Path, folder: str) -> Data:
    """Four idx files (plain or .gz) under `root`, `root/raw`, `root/<folder>` or `root/<folder>/raw`."""
    places = [Path(root) / folder / "raw", Path(root) / folder, Path(root) / "raw", Path(root)]
    for place in places:
        found = [next((p for p in (place / name, place / f"{name}.gz") if p.is_file()), None) for name in _FILES]
        if all(found):
            x, y, x_test, y_test = (_read(p) for p in found if p)
            return from_arrays(x, y, x_test, y_test)
    raise FileNotFoundError(
        f"{folder} was not found: looked for {_FILES[0]}[.gz] and its three companions in {', '.join(map(str, places))}. "
        f"Get it with: python -c \"from torchvision.datasets import {folder}; {folder}('{root}', download=True)\""
    )


def _read(path: Path) -> NDArray[Any]:
    """[N] or [N, H, W] uint8: two zero bytes, the type (8: uint8), the number of axes, their lengths as big-endian uint32, the values."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be unpacked ({error}); fetch it again") from error
    if raw[:3] != b"\0\0\x08" or len(raw) < 8 or len(raw) < 4 + 4 * raw[3]:
        raise ValueError(f"{path} is no idx file of uint8 (it begins with {raw[:4].hex()}); fetch it again")
    start, shape = 4 + 4 * raw[3], np.frombuffer(raw, ">u4", raw[3], 4).tolist()
    if not shape or len(raw) - start != math.prod(shape):
        raise ValueError(f"{path} says {shape} and holds {len(raw) - start} values; fetch it again")
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)
