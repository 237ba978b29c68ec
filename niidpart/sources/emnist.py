"""EMNIST as torchvision leaves it on a disk."""

import string
from pathlib import Path
from typing import Annotated, Literal

from ..data import Data, from_arrays
from ..data.readers.files import AnySize, build_not_found, require_published_counts
from ..data.readers.idx import read_idx_files

__all__ = ["emnist"]

_ALL = string.digits + string.ascii_uppercase + string.ascii_lowercase
_MERGED = [
    c for c in _ALL if c not in "cijklmopsuvwxyz"
]  # letters whose two cases look alike are one class
_SETS = {  # class names by label, training images, test images: Cohen et al., table II
    "balanced": (_MERGED, 112_800, 18_800),
    "byclass": (list(_ALL), 697_932, 116_323),
    "bymerge": (_MERGED, 697_932, 116_323),
    "digits": (list(string.digits), 240_000, 40_000),
    "letters": (["none", *string.ascii_lowercase], 124_800, 20_800),  # labels begin at 1
    "mnist": (list(string.digits), 60_000, 10_000),
}


def emnist(
    root: str | Path,
    *,
    emnist_split: Annotated[
        Literal["balanced", "byclass", "bymerge", "digits", "letters", "mnist"],
        "Which of its six sets.",
    ] = "balanced",
    any_size: AnySize = False,
) -> Data:
    """EMNIST, one of its six sets: uint8 [N, 28, 28] as stored, which is transposed (torchvision gives them so too), 10 to 62
    classes with names. root: the folder that holds `EMNIST/raw`.

    Cohen et al., EMNIST: an extension of MNIST to handwritten letters, 2017.
    """
    start = f"emnist-{emnist_split}"
    names = [
        f"{start}-{part}-{kind}"
        for part in ("train", "test")
        for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
    ]
    base = Path(root)
    places = [base / "EMNIST" / "raw", base / "EMNIST", base / "raw", base / "gzip", base]
    arrays = read_idx_files(places, names)
    if arrays is None:
        get = f"python -c \"from torchvision.datasets import EMNIST; EMNIST('{root}', '{emnist_split}', download=True)\""
        raise build_not_found("EMNIST", [f"{names[0]}[.gz] and its three companions"], places, get)
    class_names, n, n_test = _SETS[emnist_split]
    counts = ("training images", "test images")
    require_published_counts(
        f"EMNIST {emnist_split}", (len(arrays[1]), len(arrays[3])), (n, n_test), counts, any_size
    )
    return from_arrays(*arrays, class_names=class_names)
