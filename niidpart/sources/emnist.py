"""EMNIST as torchvision leaves it on a disk."""

import string
from pathlib import Path
from typing import Annotated, Literal

from ..data import Data, DataSource, Download, from_arrays
from ..data.places import DataPlaces
from ..data.readers.files import AnySize, require_published_counts
from ..data.readers.idx import read_idx_file

_ALL = string.digits + string.ascii_uppercase + string.ascii_lowercase
# Letters whose two cases look alike are one class.
_MERGED = [c for c in _ALL if c not in "cijklmopsuvwxyz"]
_SETS = {  # class names by label, training images, test images: Cohen et al., table II
    "balanced": (_MERGED, 112_800, 18_800),
    "byclass": (list(_ALL), 697_932, 116_323),
    "bymerge": (_MERGED, 697_932, 116_323),
    "digits": (list(string.digits), 240_000, 40_000),
    "letters": (["none", *string.ascii_lowercase], 124_800, 20_800),  # labels begin at 1
    "mnist": (list(string.digits), 60_000, 10_000),
}

_PARTS = (
    *("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    *("test-images-idx3-ubyte", "test-labels-idx1-ubyte"),
)

EmnistSplit = Annotated[
    Literal["balanced", "byclass", "bymerge", "digits", "letters", "mnist"],
    "Which of its six sets.",
]

_DOWNLOAD = Download(
    place="gzip.zip",
    urls=("https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",),
    digest="md5:58c8d27c78d21e728a6bc7b3cc06412e",
    n_bytes=561_753_746,
    folder="gzip",
)


def emnist(
    root: str | Path, *, emnist_split: EmnistSplit = "balanced", any_size: AnySize = False
) -> Data:
    """EMNIST, one of its six sets: uint8 [N, 28, 28], 10 to 62 classes with names.

    Cohen et al., EMNIST: an extension of MNIST to handwritten letters, 2017. The images are as
    stored, which is transposed; torchvision gives them so too.

    Parameters
    ----------
    root : path
        The folder that holds `EMNIST/raw`.
    emnist_split : str
        Which of the six sets.
    any_size : bool
        Take files with other counts than the published ones.
    """
    files = _list_places(emnist_split).require(root)
    x, y, x_test, y_test = [read_idx_file(path) for path in files]
    class_names, n, n_test = _SETS[emnist_split]
    require_published_counts(
        f"EMNIST {emnist_split}",
        got=(len(y), len(y_test)),
        published=(n, n_test),
        kinds=("training images", "test images"),
        any_size=any_size,
    )
    return from_arrays(x, y, x_test, y_test, class_names=class_names)


def _list_places(emnist_split: str) -> DataPlaces:
    """Return where the four files of one of the sets lie."""
    names = tuple(f"emnist-{emnist_split}-{part}" for part in _PARTS)
    return DataPlaces(
        title="EMNIST",
        folders=("EMNIST/raw", "EMNIST", "raw", "gzip", ""),
        forms=(names,),
        get="get emnist",
        shown=(f"{names[0]}[.gz] and its three companions",),
    )


ENTRY = DataSource(
    load=emnist,
    places=_list_places("balanced"),
    downloads=(_DOWNLOAD,),
    paper="cohen2017emnist",
)
