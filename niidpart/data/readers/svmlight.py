"""libsvm (svmlight) text: `label index:value ...`, read by scikit-learn."""

import hashlib
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic.rng import Ints, stream
from ...errors import FileFault, UsageError
from ...splits.digests import encode_json
from ..columns import Features
from .files import open_packed

OrderSeed = Annotated[int, "Seed of the order whose last quarter is the test set."]

_WIDEST = 1 << 27  # features; a row of so many takes 0.5 GB when it is made dense


def read_libsvm(
    path: Path, n_features: int | None = None, zero_based: bool = False
) -> tuple[Any, Ints]:
    """(X [n, D] sparse float32 in compressed rows, labels [n] int64). D: the largest index in the file, or n_features where that is more.

    zero_based: the first feature is 0:, not 1:. FileFault that names the file.
    """
    from sklearn.datasets import load_svmlight_file

    with open_packed(path) as f:
        try:
            x, y = load_svmlight_file(f, dtype=np.float32, zero_based=zero_based)
        except (ValueError, OverflowError, MemoryError) as error:
            raise FileFault(
                f"{path} cannot be read as libsvm text ({str(error) or type(error).__name__}); fetch it again"
            ) from error
    if not x.shape[0]:
        raise FileFault(f"{path} holds no examples")
    width = x.shape[1]
    if n_features is not None and width > n_features:
        raise FileFault(f"{path} has a feature {width}, and there should be {n_features}")
    if max(width, n_features or 0) > _WIDEST:
        raise FileFault(
            f"{path} has a feature {max(width, n_features or 0)}; at most {_WIDEST} features are read"
        )
    if not np.isfinite(x.data).all():
        raise FileFault(f"{path} holds values that are not finite numbers")
    if not np.isfinite(y).all() or (y != np.rint(y)).any() or np.abs(y).max() >= 1 << 53:
        raise UsageError(f"{path}: labels are real numbers (regression?); whole numbers are needed")
    x.eliminate_zeros()
    x.resize(x.shape[0], max(width, n_features or 0))
    return x, y.astype(np.int64)


def make_dense_features(x: Any) -> Features:
    """The features of a sparse matrix: float32 [n, D] of the rows that are asked for."""

    def features(rows: Ints | slice) -> NDArray[Any]:
        dense: NDArray[Any] = x[rows].toarray()
        return dense

    return features


def digest_sparse(*parts: Any) -> str:
    """sha256 over sparse matrices and label arrays (None where there is none): shapes, and rows as (number of values, indices, values)."""
    h = hashlib.sha256()
    for part in parts:
        h.update(encode_json(None if part is None else list(part.shape)))
        arrays = (
            []
            if part is None
            else [(part, "<i8")]
            if isinstance(part, np.ndarray)
            else [(part.indptr, "<i8"), (part.indices, "<i8"), (part.data, "<f4")]
        )
        for array, kind in arrays:
            h.update(np.ascontiguousarray(array, kind).data)
    return h.hexdigest()


def draw_three_quarters(name: str, n: int, data_seed: int) -> tuple[Ints, Ints]:
    """(training rows, test rows), each ascending: the first floor(0.75 n) of a random order, and the rest (Li et al., ICDE 2022, in their code)."""
    order = stream(data_seed, name, "test").permutation(n)
    cut = n * 3 // 4
    return np.sort(order[:cut]), np.sort(order[cut:])
