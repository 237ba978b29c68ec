"""RCV1 (Reuters news), binary, from the LIBSVM data page."""

from dataclasses import replace
from pathlib import Path

from ..data import Data, DataSource, from_columns
from ..data.places import DataPlaces
from ..data.readers.files import AnySize, require_published_counts
from ..data.readers.svmlight import (
    OrderSeed,
    digest_sparse,
    draw_three_quarters,
    make_dense_features,
    read_libsvm,
)

N_FEATURES = 47_236
_FILE = "rcv1_train.binary"
_PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"

PLACES = DataPlaces(
    title="rcv1",
    folders=("", "rcv1"),
    forms=((_FILE,),),
    get=f"curl -O --output-dir {{root}} {_PAGE}/{_FILE}.bz2",
    shown=(f"{_FILE}[.bz2]",),
)


def rcv1(root: str | Path, *, data_seed: OrderSeed = 0, any_size: AnySize = False) -> Data:
    """RCV1: 15,181 training and 5,061 test news, float32 [N, 47236] kept sparse, 2 classes.

    Lewis et al., JMLR 5 (2004): the 20,242 rows of `rcv1_train.binary`. The first floor(0.75 n) of
    a random order are the training set, as in the code of Li et al., ICDE 2022; their Table II
    prints 15,182 and 5,060. Needs scikit-learn.

    Parameters
    ----------
    root : path
        The folder that holds the file (plain or packed).
    data_seed : int
        Seed of the order whose last quarter is the test set.
    any_size : bool
        Take files with other counts than the published ones.
    """
    [path] = PLACES.require(root)
    x, y = read_libsvm(path, N_FEATURES)
    require_published_counts(
        "rcv1 (Table II)",
        got=(len(y), x.shape[1]),
        published=(20_242, N_FEATURES),
        kinds=("rows", "features"),
        any_size=any_size,
    )
    train, test = draw_three_quarters("rcv1", len(y), data_seed)
    x_train, x_test = x[train], x[test]
    data = from_columns(
        y[train], make_dense_features(x_train, path), y[test], make_dense_features(x_test, path)
    )
    return replace(data, content_sha256=digest_sparse(x_train, x_test, data.test_labels))


ENTRY = DataSource(load=rcv1, places=PLACES, paper="lewis2004rcv1")
