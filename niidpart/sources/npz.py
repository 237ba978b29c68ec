"""Any data set in one numpy archive."""

from pathlib import Path

from ..data import Data, DataSource, from_arrays
from ..data.readers.archive import read_npz_arrays

_KEYS = (
    *("x", "y", "x_train", "y_train", "x_test", "y_test"),
    *("group", "group_train", "group_test"),
)


def npz(root: str | Path) -> Data:
    """An .npz file with `x, y` (and `x_test, y_test`), or `x_train, y_train` (and so on).

    `x` may be missing for labels alone. `group` (or `group_train`), `group_test`: a group of each
    example, integers or text. uint8 features are divided by 255 in training, floats are taken
    unchanged. Nothing is unpickled.

    Parameters
    ----------
    root : path
        The file.
    """
    held = read_npz_arrays(Path(root), _KEYS, one_of=("y", "y_train"))
    ending = "" if held["y_train"] is None else "_train"
    group = held[f"group{ending}"]
    if group is None:
        group = held["group"]
    y = held[f"y{ending}"]
    assert y is not None  # one of the two is there
    return from_arrays(
        held[f"x{ending}"],
        y,
        held["x_test"],
        held["y_test"],
        groups=group,
        test_groups=held["group_test"],
    )


ENTRY = DataSource(load=npz)
