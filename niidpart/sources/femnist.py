"""FEMNIST: handwritten characters by writer, in the three forms that people have it."""

import string
from pathlib import Path
from typing import Annotated

import numpy as np

from ..data import Data, DataSource, from_arrays
from ..data.places import DataPlaces
from ..data.readers.archive import read_npz_arrays
from ..data.readers.files import AnySize, require_published_counts
from ..data.readers.leaf import (
    WrittenImages,
    find_json_files,
    read_leaf_json,
    read_writers_hdf5,
)
from ..errors import FileFault

_NAMES = string.digits + string.ascii_uppercase + string.ascii_lowercase
_REPOSITORY = "https://github.com/TalwalkarLab/leaf"
_MAKE = "./preprocess.sh -s niid --sf 1.0 -t sample"

PLACES = DataPlaces(
    title="FEMNIST",
    folders=("", "femnist", "femnist/data", "leaf", "data"),
    forms=(
        ("train/*.json*",),
        ("fed_emnist_digitsonly_train.h5", "fed_emnist_digitsonly_test.h5"),
        ("fed_emnist_train.h5", "fed_emnist_test.h5"),
        ("femnist.npz",),
        ("all_data/*.json*",),
        ("*.json*",),
    ),
    get=f"git clone {_REPOSITORY} && cd leaf/data/femnist && {_MAKE}",
    shown=(
        "train/*.json and test/*.json",
        "fed_emnist_digitsonly_train.h5 and _test.h5",
        "*.json",
        "femnist.npz",
    ),
)

_Parts = tuple[WrittenImages, WrittenImages | None]  # training set, test set


def femnist(
    root: str | Path,
    *,
    digits: Annotated[bool, "The ten digits alone, without the letters."] = False,
    any_size: AnySize = False,
) -> Data:
    """FEMNIST: images of 28 x 28 (ink 0, paper 255), 62 classes, groups are the writers by name.

    LEAF: Caldas et al., 2018; NIST Special Database 19. The ten digits of Li et al., ICDE 2022,
    Table II, are TensorFlow Federated's: 341,873 and 40,832 images of 3,383 writers, which is
    asserted of that file.

    Parameters
    ----------
    root : path
        A folder of LEAF (`train/*.json` and `test/*.json`, or JSON files without a test set), one
        such file (plain or packed), a folder with TensorFlow Federated's
        `fed_emnist_digitsonly_train.h5` (or `fed_emnist_train.h5`) and its `_test.h5`, or an .npz
        with x, y, writer, test and names.
    digits : bool
        The ten digits alone, without the letters.
    any_size : bool
        Take files with other counts than the published ones.
    """
    train, test = _read(Path(root), any_size)
    if digits:
        train = train.select(train.y < 10)
        test = None if test is None else test.select(test.y < 10)
    if not len(train.y):
        what = "images of digits" if digits else "images"
        raise FileFault(f"{root} holds no {what} in its training set")
    names = list(_NAMES)
    if test is None or not len(test.y):
        return from_arrays(train.x, train.y, groups=train.writer, class_names=names)
    if train.x.dtype != test.x.dtype:
        train, test = _to_floats(train), _to_floats(test)
    return from_arrays(
        train.x,
        train.y,
        test.x,
        test.y,
        groups=train.writer,
        test_groups=test.writer,
        class_names=names,
    )


def _to_floats(images: WrittenImages) -> WrittenImages:
    if images.x.dtype != np.uint8:
        return images
    return images._replace(x=images.x / np.float32(255))


def _read(root: Path, any_size: bool) -> _Parts:
    """Return the images of whichever form lies there."""
    if root.is_file():
        return _read_npz(root) if root.suffix == ".npz" else (read_leaf_json([root]), None)
    for place in PLACES.list_folders(root):
        train_files = find_json_files(place / "train")
        if train_files:
            test_files = find_json_files(place / "test")
            test = read_leaf_json(test_files) if test_files else None
            return read_leaf_json(train_files), test
        for start in ("fed_emnist_digitsonly", "fed_emnist"):
            train_file, test_file = place / f"{start}_train.h5", place / f"{start}_test.h5"
            if train_file.is_file() and test_file.is_file():
                return _read_hdf5(train_file, test_file, any_size)
        if (place / "femnist.npz").is_file():
            return _read_npz(place / "femnist.npz")
        loose = find_json_files(place / "all_data") or find_json_files(place)
        if loose:
            return read_leaf_json(loose), None
    raise PLACES.build_not_found(root)


def _read_hdf5(train_file: Path, test_file: Path, any_size: bool) -> _Parts:
    train, test = read_writers_hdf5(train_file), read_writers_hdf5(test_file)
    if "digitsonly" in train_file.name:
        require_published_counts(
            "FEMNIST (Table II)",
            got=(len(train.y), len(test.y)),
            published=(341_873, 40_832),
            kinds=("training images", "test images"),
            any_size=any_size,
        )
    return train, test


def _read_npz(path: Path) -> _Parts:
    """Return what an archive holds.

    x [n, 28, 28] uint8, y [n], writer [n] (numbers of names [w], or names), test [n] (1: test
    set).
    """
    held = read_npz_arrays(path, ("x", "y", "writer", "test", "names"))
    x, y = held["x"], held["y"]
    writer, names = held["writer"], held["names"]
    needed = f"{path} needs the arrays x [n, 28, 28], y [n] and writer [n]"
    if x is None or y is None or writer is None or x.ndim == 0:
        raise FileFault(needed)
    if y.shape != (len(x),) or writer.shape != (len(x),):
        raise FileFault(needed)
    if names is not None:
        are_numbers = writer.dtype.kind in "iu" and writer.min(initial=0) >= 0
        if not are_numbers or writer.max(initial=-1) >= names.size:
            raise FileFault(f"{path}: writer does not number the {names.size} names")
        texts = [str(name) for name in names.reshape(-1)]
        writer = np.array(texts, object)[writer]
    images = WrittenImages(x, y.astype(np.int64), writer)
    test = held["test"]
    if test is None:
        return images, None
    if test.shape != y.shape or not np.isin(test, (0, 1)).all():
        got = f"test is {test.dtype}{list(test.shape)}"
        raise FileFault(f"{path}: {got}; 0 or 1 for each image is needed")
    return images.select(test == 0), images.select(test == 1)


ENTRY = DataSource(load=femnist, places=PLACES, paper="caldas2018leaf")
