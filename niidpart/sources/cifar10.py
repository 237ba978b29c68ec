"""CIFAR-10 as torchvision leaves it on a disk, or its binary version."""

from pathlib import Path

from ..data import Data, from_arrays
from ..data.readers.cifar import binary, names_of, pickled
from ..data.readers.files import AnySize, as_published, not_found

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
                pickled([place / b for b in BATCHES], "labels"),
                pickled([place / "test_batch"], "labels"),
            )
            names = names_of(place / "batches.meta", "label_names")
            break
        if all(
            (place / name).is_file()
            for name in [*(f"{b}.bin" for b in BATCHES), "test_batch.bin", "batches.meta.txt"]
        ):
            train, test = (
                binary([place / f"{b}.bin" for b in BATCHES], 1, 0),
                binary([place / "test_batch.bin"], 1, 0),
            )
            names = names_of(place / "batches.meta.txt", "")
            break
    else:
        get = f"python -c \"from torchvision.datasets import CIFAR10; CIFAR10('{root}', download=True)\""
        raise not_found(
            "CIFAR-10",
            [
                "data_batch_1 to _5, test_batch and batches.meta (or the same in .bin, with batches.meta.txt)"
            ],
            places,
            get,
        )
    as_published(
        "CIFAR-10",
        (len(train[1]), len(test[1])),
        (50_000, 10_000),
        ("training images", "test images"),
        any_size,
    )
    return from_arrays(*train, *test, class_names=names)
