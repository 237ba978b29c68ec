"""CIFAR-10 as torchvision leaves it on a disk, or its binary version."""

from pathlib import Path

from ..data import Data, from_arrays
from ..data.readers.cifar import read_binary_batches, read_class_names, read_pickled_batches
from ..data.readers.files import AnySize, build_not_found, require_published_counts

__all__ = ["cifar10"]

BATCHES = [f"data_batch_{i}" for i in range(1, 6)]


def cifar10(root: str | Path, *, any_size: AnySize = False) -> Data:
    """CIFAR-10: 50,000 training and 10,000 test images, uint8 [N, 32, 32, 3], 10 classes with names. root: the folder that holds
    `cifar-10-batches-py` (or `cifar-10-batches-bin`).

    Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009. Pickles are read by an unpickler that runs nothing.
    """
    places = [Path(root) / "cifar-10-batches-py", Path(root) / "cifar-10-batches-bin", Path(root)]
    for place in places:
        if all((place / name).is_file() for name in [*BATCHES, "test_batch", "batches.meta"]):
            train, test = (
                read_pickled_batches([place / b for b in BATCHES], "labels"),
                read_pickled_batches([place / "test_batch"], "labels"),
            )
            names = read_class_names(place / "batches.meta", "label_names")
            break
        if all(
            (place / name).is_file()
            for name in [*(f"{b}.bin" for b in BATCHES), "test_batch.bin", "batches.meta.txt"]
        ):
            train, test = (
                read_binary_batches([place / f"{b}.bin" for b in BATCHES], 1, 0),
                read_binary_batches([place / "test_batch.bin"], 1, 0),
            )
            names = read_class_names(place / "batches.meta.txt", "")
            break
    else:
        get = f"python -c \"from torchvision.datasets import CIFAR10; CIFAR10('{root}', download=True)\""
        raise build_not_found(
            "CIFAR-10",
            [
                "data_batch_1 to _5, test_batch and batches.meta (or the same in .bin, with batches.meta.txt)"
            ],
            places,
            get,
        )
    require_published_counts(
        "CIFAR-10",
        (len(train[1]), len(test[1])),
        (50_000, 10_000),
        ("training images", "test images"),
        any_size,
    )
    return from_arrays(*train, *test, class_names=names)
