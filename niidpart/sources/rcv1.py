"""RCV1 (Reuters news), binary, from the LIBSVM data page."""

from dataclasses import replace
from pathlib import Path

from ..data import Data, from_columns
from ..data.readers.files import AnySize, build_not_found, find_first_file, require_published_counts
from ..data.readers.svmlight import (
    OrderSeed,
    digest_sparse,
    draw_three_quarters,
    make_dense_features,
    read_libsvm,
)

__all__ = ["rcv1"]

N_FEATURES = 47_236


def rcv1(root: str | Path, *, data_seed: OrderSeed = 0, any_size: AnySize = False) -> Data:
    """RCV1: 15,181 training and 5,061 test rows of the 20,242 in `rcv1_train.binary` (plain or packed), float32 [N, 47236] kept sparse, 2 classes.
    root: the folder that holds the file. Needs scikit-learn.

    The first floor(0.75 n) of a random order are the training set, as in the code of Li et al., ICDE 2022; their Table II prints
    15,182 and 5,060. Lewis et al., JMLR 5 (2004).
    """
    places = [Path(root), Path(root) / "rcv1"]
    path = find_first_file(places, "rcv1_train.binary")
    if path is None:
        page = (
            "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/rcv1_train.binary.bz2"
        )
        raise build_not_found(
            "rcv1", ["rcv1_train.binary[.bz2]"], places, f"curl -O --output-dir '{root}' {page}"
        )
    x, y = read_libsvm(path, N_FEATURES)
    require_published_counts(
        "rcv1 (Table II)",
        (len(y), x.shape[1]),
        (20_242, N_FEATURES),
        ("rows", "features"),
        any_size,
    )
    train, test = draw_three_quarters("rcv1", len(y), data_seed)
    data = from_columns(
        y[train], make_dense_features(x[train]), y[test], make_dense_features(x[test])
    )
    return replace(data, content_sha256=digest_sparse(x[train], x[test], data.test_labels))
