"""Covertype (forest cover), binary, from the LIBSVM data page."""

from pathlib import Path

import numpy as np

from ..data import Array, Data, DataSource, from_arrays
from ..data.places import DataPlaces
from ..data.readers.files import AnySize, require_published_counts
from ..data.readers.svmlight import OrderSeed, draw_three_quarters, read_libsvm

N_FEATURES = 54
_PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
_SCALED, _UNSCALED = "covtype.libsvm.binary.scale", "covtype.libsvm.binary"

PLACES = DataPlaces(
    title="covtype",
    folders=("", "covtype"),
    forms=((_SCALED,), (_UNSCALED,)),
    get=f"curl -O --output-dir {{root}} {_PAGE}/{_SCALED}.bz2",
    shown=(f"{_SCALED}[.bz2]", f"{_UNSCALED}[.bz2]"),
)


def covtype(root: str | Path, *, data_seed: OrderSeed = 0, any_size: AnySize = False) -> Data:
    """Covertype: 435,759 training and 145,253 test rows, float32 [N, 54] in [0, 1], 2 classes.

    Blackard and Dean, 1999. The first floor(0.75 n) of a random order are the training set (Li et
    al., ICDE 2022). The file that is not scaled is scaled here as the other one was: each feature
    from its least to its largest value over all rows. Needs scikit-learn.

    Parameters
    ----------
    root : path
        The folder that holds `covtype.libsvm.binary.scale` or `covtype.libsvm.binary` (plain or
        packed).
    data_seed : int
        Seed of the order whose last quarter is the test set.
    any_size : bool
        Take files with other counts than the published ones.
    """
    [path] = PLACES.require(root)
    sparse, y = read_libsvm(path, N_FEATURES)
    require_published_counts(
        "covtype (Table II)",
        got=(len(y), sparse.shape[1]),
        published=(581_012, N_FEATURES),
        kinds=("rows", "features"),
        any_size=any_size,
    )
    x = sparse.toarray()
    if ".scale" not in path.suffixes:
        x = _scale_features(x)
    train, test = draw_three_quarters("covtype", len(y), data_seed)
    return from_arrays(x[train], y[train], x[test], y[test])


def _scale_features(x: Array) -> Array:
    """Return each feature from 0, its least value, to 1, its largest; a constant one is 0."""
    low = x.min(axis=0)
    span = x.max(axis=0) - low
    divisor = np.where(span > 0, span, np.float32(1))
    scaled: Array = (x - low) / divisor
    return scaled


ENTRY = DataSource(load=covtype, places=PLACES, paper="blackard1999covertype")
