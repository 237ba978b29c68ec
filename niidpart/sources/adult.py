"""Adult (census income) in the binary form of the LIBSVM data page: a9a and a9a.t."""

from pathlib import Path

from ..arithmetic.rng import Ints
from ..data import Data, DataSource, from_arrays
from ..data.places import DataPlaces
from ..data.readers.files import AnySize, require_published_counts
from ..data.readers.svmlight import read_libsvm

N_FEATURES = 123
_PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"

PLACES = DataPlaces(
    title="adult",
    folders=("", "a9a", "adult"),
    forms=(("a9a", "a9a.t"),),
    get=f"curl --output-dir {{root}} -o '#1' '{_PAGE}/{{a9a,a9a.t}}'",
    shown=("a9a[.gz, .bz2, .xz] with a9a.t",),
)


def adult(root: str | Path, *, any_size: AnySize = False) -> Data:
    """Adult: 32,561 training and 16,281 test rows, float32 [N, 123] of 0 and 1, 2 classes.

    UCI Adult, Becker and Kohavi, 1996. The test file shows 122 features; the last one is 0 there
    (Li et al., ICDE 2022, do the same). Needs scikit-learn.

    Parameters
    ----------
    root : path
        The folder that holds `a9a` and `a9a.t` (plain or packed).
    any_size : bool
        Take files with other counts than the published ones.
    """
    path, test_path = PLACES.require(root)
    x, y = read_libsvm(path, N_FEATURES)
    x_test, y_test = read_libsvm(test_path, N_FEATURES)
    require_published_counts(
        "adult (Table II)",
        got=(len(y), len(y_test)),
        published=(32_561, 16_281),
        kinds=("training rows", "test rows"),
        any_size=any_size,
    )
    return from_arrays(
        x.toarray(),
        _number_incomes(y),
        x_test.toarray(),
        _number_incomes(y_test),
        class_names=("<=50K", ">50K"),
    )


def _number_incomes(signs: Ints) -> Ints:
    """Return 0 and 1 for the file's -1 and +1."""
    return (signs + 1) // 2


ENTRY = DataSource(load=adult, places=PLACES, paper="becker1996adult")
