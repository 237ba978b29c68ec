"""CIFAR-100 as torchvision leaves it on a disk, or its binary version."""

from pathlib import Path
from typing import Annotated

from ..data import Data, from_arrays
from ..data.readers.cifar import read_binary_batches, read_class_names, read_pickled_batches
from ..data.readers.files import AnySize, build_not_found, require_published_counts

__all__ = ["cifar100"]


def cifar100(
    root: str | Path,
    *,
    coarse: Annotated[bool, "The 20 superclasses instead of the 100 classes."] = False,
    any_size: AnySize = False,
) -> Data:
    """CIFAR-100: 50,000 training and 10,000 test images, uint8 [N, 32, 32, 3], 100 classes with names. root: the folder that holds
    `cifar-100-python` (or `cifar-100-binary`).

    Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009. Pickles are read by an unpickler that runs nothing.
    """
    which = "coarse" if coarse else "fine"
    places = [Path(root) / "cifar-100-python", Path(root) / "cifar-100-binary", Path(root)]
    for place in places:
        if all((place / name).is_file() for name in ("train", "test", "meta")):
            train, test = (
                read_pickled_batches([place / part], f"{which}_labels")
                for part in ("train", "test")
            )
            names = read_class_names(place / "meta", f"{which}_label_names")
            break
        if all(
            (place / name).is_file()
            for name in ("train.bin", "test.bin", f"{which}_label_names.txt")
        ):
            train, test = (
                read_binary_batches([place / part], 2, 0 if coarse else 1)
                for part in ("train.bin", "test.bin")
            )
            names = read_class_names(place / f"{which}_label_names.txt", "")
            break
    else:
        get = f"python -c \"from torchvision.datasets import CIFAR100; CIFAR100('{root}', download=True)\""
        raise build_not_found(
            "CIFAR-100",
            [f"train, test and meta (or train.bin, test.bin and {which}_label_names.txt)"],
            places,
            get,
        )
    require_published_counts(
        "CIFAR-100",
        (len(train[1]), len(test[1])),
        (50_000, 10_000),
        ("training images", "test images"),
        any_size,
    )
    return from_arrays(*train, *test, class_names=names)
