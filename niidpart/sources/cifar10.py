"""CIFAR-10 as torchvision leaves it on a disk, or its binary version."""

from pathlib import Path

from ..data import Data, DataSource, Download, from_arrays
from ..data.places import DataPlaces
from ..data.readers.cifar import (
    CifarBatch,
    read_binary_batches,
    read_class_names,
    read_pickled_batches,
)
from ..data.readers.files import AnySize, require_published_counts

_BATCHES = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]

PLACES = DataPlaces(
    title="CIFAR-10",
    folders=("cifar-10-batches-py", "cifar-10-batches-bin", ""),
    forms=(
        (*_BATCHES, "batches.meta"),
        (*(f"{name}.bin" for name in _BATCHES), "batches.meta.txt"),
    ),
    get="get cifar10",
    shown=(
        "data_batch_1 to _5, test_batch and batches.meta (or the same in .bin, with "
        "batches.meta.txt)",
    ),
)

_DOWNLOAD = Download(
    place="cifar-10-python.tar.gz",
    urls=("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",),
    digest="md5:c58f30108f718f92721af3b95e74349a",
    n_bytes=170_498_071,
    folder="cifar-10-batches-py",
)


def cifar10(root: str | Path, *, any_size: AnySize = False) -> Data:
    """CIFAR-10: 50,000 training and 10,000 test images, uint8 [N, 32, 32, 3], 10 named classes.

    Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009. Pickles are read by
    an unpickler that runs nothing.

    Parameters
    ----------
    root : path
        The folder that holds `cifar-10-batches-py` (or `cifar-10-batches-bin`).
    any_size : bool
        Take files with other counts than the published ones.
    """
    train, test, class_names = _read(Path(root))
    require_published_counts(
        "CIFAR-10",
        got=(len(train[1]), len(test[1])),
        published=(50_000, 10_000),
        kinds=("training images", "test images"),
        any_size=any_size,
    )
    return from_arrays(*train, *test, class_names=class_names)


def _read(root: Path) -> tuple[CifarBatch, CifarBatch, list[str]]:
    *train, test, meta = PLACES.require(root)
    if meta.suffix == ".txt":
        names = read_class_names(meta, "")
        return read_binary_batches(train, 1, 0), read_binary_batches([test], 1, 0), names
    names = read_class_names(meta, "label_names")
    return read_pickled_batches(train, "labels"), read_pickled_batches([test], "labels"), names


ENTRY = DataSource(load=cifar10, places=PLACES, downloads=(_DOWNLOAD,), paper="krizhevsky2009tiny")
