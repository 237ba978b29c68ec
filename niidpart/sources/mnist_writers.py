"""MNIST by who wrote it: QMNIST's numbers of the writers beside MNIST's own files."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ..data import SOURCES, Data, DataSource, list_downloads
from ..data.places import DataPlaces
from ..data.readers.files import AnySize, require_published_counts
from ..data.readers.idx import read_idx_file
from ..errors import FileFault

_FILE = "qmnist-train-labels-idx2-int"
_DIGIT, _WRITER = 0, 2  # columns of that file
_DOWNLOADS = list_downloads(
    "QMNIST/raw",
    ["https://raw.githubusercontent.com/facebookresearch/qmnist/master/"],
    {f"{_FILE}.gz": ("md5:0058f8dd561b90ffdd0f734c6a30e5e4", 463_024)},
)

PLACES = DataPlaces(
    title="MNIST's writers",
    folders=("QMNIST/raw", "QMNIST", "MNIST/raw", "MNIST", "raw", ""),
    forms=((_FILE,),),
    get="get mnist-writers",
    shown=(f"{_FILE}[.gz], beside which MNIST lies,",),
)


def mnist_writers(root: str | Path, *, any_size: AnySize = False) -> Data:
    """MNIST by its writers: 60,000 images of 539 people, uint8 [N, 28, 28]; 10,000 for the test.

    LeCun et al., 1998; who wrote each image was found again by Yadav and Bottou, Cold Case: The
    Lost MNIST Digits, NeurIPS 2019. Groups are the writers, by their number at NIST. The images,
    their order and the test set are MNIST's.

    Parameters
    ----------
    root : path
        The folder that holds `MNIST/raw`, and `QMNIST/raw` with the file of QMNIST's labels.
    any_size : bool
        Take files with other counts than the published ones.
    """
    [path] = PLACES.require(root)
    data = SOURCES.record("mnist").load(root, any_size=any_size)
    told = read_idx_file(path, "int32")
    n = len(data.labels)
    is_table = told.ndim == 2 and told.shape[0] == n and told.shape[1] > _WRITER
    if not is_table:
        needed = f"[{n}, 8], a row for each image of MNIST, is needed"
        raise FileFault(f"{path} has numbers {list(told.shape)}; {needed}")
    names = [int(name) for name in data.class_names]
    digits = np.array(names)[data.labels]
    n_other = int(np.count_nonzero(told[:, _DIGIT] != digits))
    if n_other:
        got = f"{path} says another digit of {n_other:,} images than MNIST's own labels"
        raise FileFault(f"{got}; it belongs to other files, fetch both again")
    writers = told[:, _WRITER].astype(np.int64)
    require_published_counts(
        "MNIST by its writers",
        got=(len(np.unique(writers)),),
        published=(539,),
        kinds=("writers",),
        any_size=any_size,
    )
    return replace(data, groups=writers)


ENTRY = DataSource(
    load=mnist_writers,
    places=PLACES,
    downloads=(*SOURCES.record("mnist").downloads, *_DOWNLOADS),
    paper="yadav2019qmnist",
)
