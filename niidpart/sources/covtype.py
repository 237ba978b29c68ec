"""Covertype (forest cover), binary, from the LIBSVM data page."""

from pathlib import Path

import numpy as np

from ..data import Data, from_arrays
from ..data.readers.files import AnySize, build_not_found, find_first_file, require_published_counts
from ..data.readers.svmlight import OrderSeed, draw_three_quarters, read_libsvm

__all__ = ["covtype"]

N_FEATURES = 54


def covtype(root: str | Path, *, data_seed: OrderSeed = 0, any_size: AnySize = False) -> Data:
    """Covertype: 435,759 training and 145,253 test rows, float32 [N, 54] in [0, 1], 2 classes. root: the folder that holds
    `covtype.libsvm.binary.scale` or `covtype.libsvm.binary` (plain or packed). Needs scikit-learn.

    The first floor(0.75 n) of a random order are the training set (Li et al., ICDE 2022). The file that is not scaled is scaled here as
    the other one was: each feature from its least to its largest value over all rows. Blackard and Dean, 1999.
    """
    places = [Path(root), Path(root) / "covtype"]
    path = find_first_file(places, "covtype.libsvm.binary.scale", "covtype.libsvm.binary")
    if path is None:
        page = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/covtype.libsvm.binary.scale.bz2"
        names = ["covtype.libsvm.binary.scale[.bz2]", "covtype.libsvm.binary[.bz2]"]
        raise build_not_found("covtype", names, places, f"curl -O --output-dir '{root}' {page}")
    sparse, y = read_libsvm(path, N_FEATURES)
    require_published_counts(
        "covtype (Table II)",
        (len(y), sparse.shape[1]),
        (581_012, N_FEATURES),
        ("rows", "features"),
        any_size,
    )
    x = sparse.toarray()
    if ".scale" not in path.suffixes:
        low = x.min(axis=0)
        span = x.max(axis=0) - low
        x = (x - low) / np.where(span > 0, span, np.float32(1))
    train, test = draw_three_quarters("covtype", len(y), data_seed)
    return from_arrays(x[train], y[train], x[test], y[test])
