"""FEMNIST: handwritten characters by writer, in the three forms that people have it."""

import string
from pathlib import Path
from typing import Annotated

import numpy as np

from ..data import Data, from_arrays
from ..data.readers.files import AnySize, build_not_found, require_published_counts
from ..data.readers.leaf import Written, find_json_files, read_hdf5, read_json
from ..errors import FileFault
from .npz import read_npz_arrays

__all__ = ["femnist"]

NAMES = string.digits + string.ascii_uppercase + string.ascii_lowercase


def femnist(
    root: str | Path,
    *,
    digits: Annotated[bool, "The ten digits alone, without the letters."] = False,
    any_size: AnySize = False,
) -> Data:
    """FEMNIST: images of 28 x 28 (ink 0, paper 255), 62 classes, groups are the writers with their names.

    root: a folder of LEAF (`train/*.json` and `test/*.json`, or JSON files without a test set), one such file (plain or packed), a folder with
    TensorFlow Federated's `fed_emnist_digitsonly_train.h5` (or `fed_emnist_train.h5`) and its `_test.h5`, or an .npz with x, y, writer, test and
    names. The ten digits of Li et al., ICDE 2022, Table II, are TensorFlow Federated's: 341,873 and 40,832 images of 3,383 writers, which is
    asserted of that file. LEAF: Caldas et al., 2018; NIST Special Database 19.
    """
    train, test = _found(Path(root), any_size)
    if digits:
        train, test = (
            None if part is None else Written(*(a[part.y < 10] for a in part))
            for part in (train, test)
        )
    if train is None or not len(train.y):
        raise FileFault(
            f"{root} holds no images{' of digits' if digits else ''} in its training set"
        )
    if test is None or not len(test.y):
        return from_arrays(train.x, train.y, groups=train.writer, class_names=NAMES)
    if train.x.dtype != test.x.dtype:
        train, test = (
            part._replace(x=part.x / np.float32(255) if part.x.dtype == np.uint8 else part.x)
            for part in (train, test)
        )
    return from_arrays(
        *train[:2], *test[:2], groups=train.writer, test_groups=test.writer, class_names=NAMES
    )


def _found(root: Path, any_size: bool) -> tuple[Written | None, Written | None]:
    if root.is_file():
        return _npz(root) if root.suffix == ".npz" else (read_json([root]), None)
    places = [root, root / "femnist", root / "femnist" / "data", root / "leaf", root / "data"]
    for place in places:
        if train := find_json_files(place / "train"):
            test = find_json_files(place / "test")
            return read_json(train), read_json(test) if test else None
        for start in ("fed_emnist_digitsonly", "fed_emnist"):
            pair = [place / f"{start}_{part}.h5" for part in ("train", "test")]
            if all(path.is_file() for path in pair):
                return _federated(pair[0], pair[1], any_size)
        if (place / "femnist.npz").is_file():
            return _npz(place / "femnist.npz")
        if loose := find_json_files(place / "all_data") or find_json_files(place):
            return read_json(loose), None
    looked = [
        "train/*.json and test/*.json",
        "fed_emnist_digitsonly_train.h5 and _test.h5",
        "*.json",
        "femnist.npz",
    ]
    get = "git clone https://github.com/TalwalkarLab/leaf && cd leaf/data/femnist && ./preprocess.sh -s niid --sf 1.0 -t sample"
    raise build_not_found("FEMNIST", looked, places, get)


def _federated(train_file: Path, test_file: Path, any_size: bool) -> tuple[Written, Written]:
    train, test = read_hdf5(train_file), read_hdf5(test_file)
    if "digitsonly" in train_file.name:
        require_published_counts(
            "FEMNIST (Table II)",
            (len(train.y), len(test.y)),
            (341_873, 40_832),
            ("training images", "test images"),
            any_size,
        )
    return train, test


def _npz(path: Path) -> tuple[Written, Written | None]:
    """x [n, 28, 28] uint8, y [n], writer [n] (numbers of names [w], or names), test [n] (1: test set)."""
    held = read_npz_arrays(path, ("x", "y", "writer", "test", "names"))
    x, y, writer = (held[key] for key in ("x", "y", "writer"))
    if (
        x is None
        or y is None
        or writer is None
        or x.ndim == 0
        or y.shape != (len(x),)
        or writer.shape != (len(x),)
    ):
        raise FileFault(f"{path} needs the arrays x [n, 28, 28], y [n] and writer [n]")
    if (names := held["names"]) is not None:
        if (
            writer.dtype.kind not in "iu"
            or writer.min(initial=0) < 0
            or writer.max(initial=-1) >= names.size
        ):
            raise FileFault(f"{path}: writer does not number the {names.size} names")
        writer = np.array([str(name) for name in names.reshape(-1)], object)[writer]
    test = held["test"]
    if test is None:
        return Written(x, y.astype(np.int64), writer), None
    if test.shape != y.shape or not np.isin(test, (0, 1)).all():
        raise FileFault(
            f"{path}: test is {test.dtype}{list(test.shape)}; 0 or 1 for each image is needed"
        )
    train, rest = (
        Written(x[keep], y[keep].astype(np.int64), writer[keep]) for keep in (test == 0, test == 1)
    )
    return train, rest
