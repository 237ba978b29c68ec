"""Tables: which of their columns are labels, groups and features."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FileFault, UsageError

Label = Annotated[str, "Column of the classes."]
Group = Annotated[str | None, "Column of the groups, whole numbers or text."]
FeatureColumns = Annotated[str | None, "Columns (a,b,c) to make features of."]
Drop = Annotated[str | None, "Columns (a,b,c) to leave out of the features."]
TestColumn = Annotated[
    str | None, "Column that says 1 (or true, or test) for the rows of the test set."
]

LONGEST = 1000  # characters of a label or a group
_NUMBER = 64  # characters of a label that is a number


def parse_names(text: str | None, columns: Sequence[str], option: str) -> list[str]:
    """The columns that `--option a,b,c` names."""
    names = [] if text is None else [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        require_column(name, columns, option)
    return names


def require_column(name: str, columns: Sequence[str], option: str) -> str:
    """The name, if there is such a column."""
    if name not in columns:
        shown = ", ".join(columns[:20]) + (", ..." if len(columns) > 20 else "")
        raise UsageError(f"there is no column {name!r}; say --{option} with one of {shown}")
    return name


def choose_feature_columns(
    columns: Sequence[str], used: Sequence[str | None], features: str | None, drop: str | None
) -> list[str]:
    """The columns that features are made of: those that `features` names, else all but those used otherwise and those that `drop` names."""
    if features is not None and drop is not None:
        raise UsageError(
            "features names the columns to take and drop those to leave out; give one of the two"
        )
    if features is not None:
        return parse_names(features, columns, "features")
    gone = {*used, *parse_names(drop, columns, "drop")}
    return [name for name in columns if name not in gone]


def parse_test_column(values: NDArray[Any], name: str) -> NDArray[np.bool_]:
    """[N] whether an example is of the test set: 0 or 1, false or true, train or test, in any case."""
    given = values.tolist()
    words = {value: str(value).lower() for value in dict.fromkeys(given)}
    test = np.array([words[value] in ("1", "true", "test") for value in given], bool)
    if strange := sorted(set(words.values()) - {"0", "false", "train", "1", "true", "test"}):
        raise UsageError(
            f"the column {name!r} holds {strange[0]!r}; 0 or 1, false or true, train or test are needed"
        )
    if test.all() or not test.any():
        raise UsageError(
            f"the column {name!r} says that {'all' if test.all() else 'no'} examples are of the test set"
        )
    return test


def parse_labels(words: NDArray[Any], name: str) -> NDArray[Any]:
    """Labels of a text column: integers where all are whole numbers, else the text. ValueError where some are missing or they are real numbers."""
    texts = words.tolist()
    if missing := texts.count(""):
        raise UsageError(
            f"the column {name!r} has {missing} empty values; fill or drop these rows first"
        )
    place = {text: k for k, text in enumerate(dict.fromkeys(texts))}
    if any(len(text) > _NUMBER for text in place):
        return words
    try:
        numbers = np.array([float(text) for text in place])
    except ValueError:
        return words
    if not np.isfinite(numbers).all():
        return words
    if (real := numbers != np.rint(numbers)).any():
        shown = next(text for text, bad in zip(place, real, strict=True) if bad)
        raise UsageError(
            f"the column {name!r} holds real numbers such as {shown} (regression?); classes are needed"
        )
    if np.abs(numbers).max(initial=0) >= 1 << 53:
        return words
    return numbers.astype(np.int64)[
        np.fromiter(map(place.__getitem__, texts), np.int64, len(texts))
    ]


def require_short(words: Sequence[str], name: str, where: str) -> None:
    """FileFault where a label or a group is longer than any is."""
    if (longest := max(map(len, words), default=0)) > LONGEST:
        raise FileFault(
            f"{where}the column {name!r} holds a text of {longest:,} characters; a label or a group has at most {LONGEST:,}"
        )
