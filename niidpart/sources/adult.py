"""Adult (census income) in the binary form of the LIBSVM data page: a9a and a9a.t."""

from pathlib import Path

from ..data import Data, from_arrays
from ..data.readers.files import AnySize, build_not_found, find_all_files, require_published_counts
from ..data.readers.svmlight import read_libsvm

__all__ = ["adult"]

N_FEATURES = 123


def adult(root: str | Path, *, any_size: AnySize = False) -> Data:
    """Adult: 32,561 training and 16,281 test rows as published, float32 [N, 123] of zeros and ones, 2 classes. root: the folder that holds
    `a9a` and `a9a.t` (plain or packed). Needs scikit-learn.

    The test file shows 122 features; the last one is 0 there (Li et al., ICDE 2022, do the same). UCI Adult, Becker and Kohavi, 1996.
    """
    base, names = Path(root), ["a9a", "a9a.t"]
    places = [base, base / "a9a", base / "adult"]
    found = find_all_files(places, names)
    if found is None:
        page = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
        raise build_not_found(
            "adult",
            [f"{n}[.gz, .bz2, .xz]" for n in names],
            places,
            f"curl -o '{base}/#1' '{page}/{{a9a,a9a.t}}'",
        )
    (x, y), (x_test, y_test) = (read_libsvm(path, N_FEATURES) for path in found)
    require_published_counts(
        "adult (Table II)",
        (len(y), len(y_test)),
        (32_561, 16_281),
        ("training rows", "test rows"),
        any_size,
    )
    income = ("<=50K", ">50K")
    return from_arrays(
        x.toarray(), (y + 1) // 2, x_test.toarray(), (y_test + 1) // 2, class_names=income
    )
