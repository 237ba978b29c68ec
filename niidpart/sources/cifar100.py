"""CIFAR-100 as torchvision leaves it on a disk, or its binary version."""

from pathlib import Path
from typing import Annotated

from ..data import Data, DataSource, Download, from_arrays
from ..data.places import DataPlaces
from ..data.readers.cifar import (
    CifarBatch,
    read_binary_batches,
    read_class_names,
    read_pickled_batches,
)
from ..data.readers.files import AnySize, require_published_counts

_DOWNLOAD = Download(
    place="cifar-100-python.tar.gz",
    urls=("https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",),
    digest="md5:eb9058c3a382ffc7106e4002c42a8d85",
    n_bytes=169_001_437,
    folder="cifar-100-python",
)


def cifar100(
    root: str | Path,
    *,
    coarse: Annotated[bool, "The 20 superclasses instead of the 100 classes."] = False,
    any_size: AnySize = False,
) -> Data:
    """CIFAR-100: 50,000 training and 10,000 test images, uint8 [N, 32, 32, 3], 100 named classes.

    Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009. Pickles are read by
    an unpickler that runs nothing.

    Parameters
    ----------
    root : path
        The folder that holds `cifar-100-python` (or `cifar-100-binary`).
    coarse : bool
        The 20 superclasses instead of the 100 classes.
    any_size : bool
        Take files with other counts than the published ones.
    """
    train, test, class_names = _read(Path(root), coarse)
    require_published_counts(
        "CIFAR-100",
        got=(len(train[1]), len(test[1])),
        published=(50_000, 10_000),
        kinds=("training images", "test images"),
        any_size=any_size,
    )
    return from_arrays(*train, *test, class_names=class_names)


def _read(root: Path, coarse: bool) -> tuple[CifarBatch, CifarBatch, list[str]]:
    which = "coarse" if coarse else "fine"
    train, test, meta = _list_places(which).require(root)
    if meta.suffix == ".txt":
        label_byte = 0 if coarse else 1  # of the two that each image has in the binary version
        names = read_class_names(meta, "")
        return (
            read_binary_batches([train], 2, label_byte),
            read_binary_batches([test], 2, label_byte),
            names,
        )
    key = f"{which}_labels"
    names = read_class_names(meta, f"{which}_label_names")
    return read_pickled_batches([train], key), read_pickled_batches([test], key), names


def _list_places(which: str) -> DataPlaces:
    """Return where the files lie; the names of the fine or the coarse labels have their own."""
    names_file = f"{which}_label_names.txt"
    return DataPlaces(
        title="CIFAR-100",
        folders=("cifar-100-python", "cifar-100-binary", ""),
        forms=(("train", "test", "meta"), ("train.bin", "test.bin", names_file)),
        get="get cifar100",
        shown=(f"train, test and meta (or train.bin, test.bin and {names_file})",),
    )


ENTRY = DataSource(
    load=cifar100,
    places=_list_places("fine"),
    downloads=(_DOWNLOAD,),
    paper="krizhevsky2009tiny",
)
