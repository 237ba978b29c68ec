"""Any data set in one numpy archive."""

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import Data, from_arrays
from ..errors import FileFault, UsageError

__all__ = ["npz"]

_INFLATE = 1100  # deflate cannot do more than 1032 : 1


def npz(root: str | Path) -> Data:
    """An .npz file with the keys `x, y` (and `x_test, y_test`), or `x_train, y_train` (and so on); `x` may be missing for labels alone.

    `group` (or `group_train`), `group_test`: a group of each example, integers or text. uint8 features are divided by 255 in training, floats are
    taken as they are. Nothing is unpickled.
    """
    path = Path(root)
    keys = (
        "x",
        "y",
        "x_train",
        "y_train",
        "x_test",
        "y_test",
        "group",
        "group_train",
        "group_test",
    )
    held = read_npz_arrays(path, keys, ("y", "y_train"))
    x, y, group = (
        held[f"{k}_train"] if held["y_train"] is not None else held[k] for k in ("x", "y", "group")
    )
    group = held["group"] if group is None else group
    if y is None:
        raise UsageError(f"{path} has no array 'y'")
    return from_arrays(
        x, y, held["x_test"], held["y_test"], groups=group, test_groups=held["group_test"]
    )


def read_npz_arrays(
    path: Path, keys: Sequence[str], needed: Sequence[str] = ()
) -> dict[str, NDArray[Any] | None]:
    """The arrays of these keys, None for those that are not there. needed: one of these has to be. FileFault that names the file."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; give the path of an .npz archive")
    if not zipfile.is_zipfile(path):
        raise FileFault(f"{path} is no .npz archive; numpy.savez(path, x=..., y=...) writes one")
    try:
        archive = np.load(path, allow_pickle=False)
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise FileFault(
            f"{path} is no .npz archive ({error}); numpy.savez(path, x=..., y=...) writes one"
        ) from error
    with archive:
        if needed and not any(key in archive for key in needed):
            there = ", ".join(archive.files)
            raise UsageError(
                f"{path} has the keys {there}; 'y' (or 'y_train') is needed, and 'x' (or 'x_train') for training"
            )
        infos = {
            key: archive.zip.getinfo(key if key in archive.zip.namelist() else f"{key}.npy")
            for key in keys
            if key in archive
        }
        if sum(info.compress_size for info in infos.values()) > path.stat().st_size:
            raise FileFault(
                f"{path} says that its arrays take more bytes than the whole file has; write it again"
            )
        return {
            key: _column(archive, key, infos[key], path) if key in infos else None for key in keys
        }


def _column(archive: Any, key: str, info: zipfile.ZipInfo, path: Path) -> NDArray[Any]:
    try:
        if info.file_size > _INFLATE * info.compress_size + 65536:
            raise UsageError(f"{info.compress_size} bytes that say they are {info.file_size}")
        with archive.zip.open(info) as f:
            version = np.lib.format.read_magic(f)
            shape, _, kind = (
                np.lib.format.read_array_header_1_0(f)
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0(f)
            )
        if not kind.itemsize:
            raise UsageError(f"it says {list(shape)} of {kind.str}, which are values of no bytes")
        if kind.itemsize * int(np.prod(shape, dtype=object)) > info.file_size:
            raise UsageError(f"it says {list(shape)} and holds {info.file_size} bytes")
        array: NDArray[Any] = archive[key]
    except (
        ValueError,
        OSError,
        EOFError,
        MemoryError,
        zlib.error,
        zipfile.BadZipFile,
        NotImplementedError,
    ) as error:
        raise FileFault(
            f"{path}: {key!r} cannot be read ({error}); save plain numbers or fixed-length strings"
        ) from error
    return array
