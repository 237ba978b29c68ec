"""`diff`: what two splits have in common and what not."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import require_type
from ..heterogeneity import Reading, Skew
from ..splitfile.reading import read
from ..splits.dealing import find_reading, measure_skew
from ..splits.digests import digest_array
from ..splits.recipe import JSON
from ..splits.split import FederatedSplit
from .part_differences import PartDifference, compare_parts, describe_same_part

Changes = dict[str, tuple[Any, Any]]
"""Field -> (in a, in b); None where one lacks it."""


@dataclass(frozen=True)
class Difference:
    """The outcome of `niidpart.diff(a, b)`. Each pair is (of a, of b).

    Parameters
    ----------
    same : bool
        True if the digests are equal.
    digests : pair of str
    recipe, source : dict
        The fields that differ; those of options have a dot (`params.beta`).
    why_not : str
        Why rows cannot be compared; "" where they can.
    parts : dict of PartDifference
        By the name of the part; empty where rows cannot be compared.
    columns : dict
        Name -> how many parties have another value; None where the numbers of parties differ or one
        split lacks it.
    skew : dict
        Measure (with its form, and `map_beta`) -> values to compare by; empty for one split, which
        has one skew.
    skew_by : str
        What these are: "corrected", for chance as far as it is in the counts of each split, or
        "value" where of one of the splits nobody knows.

    Examples
    --------
    >>> import niidpart, numpy as np
    >>> split = niidpart.make(np.arange(100) % 4, "homo", n_parties=5)
    >>> found = niidpart.diff(split, split)
    >>> found.same, found.parts["train"].moved
    (True, 0)
    """

    same: bool
    digests: tuple[str, str]
    recipe: Changes
    source: Changes
    why_not: str
    parts: dict[str, PartDifference]
    columns: dict[str, int | None]
    skew: Changes
    skew_by: Literal["corrected", "value"]

    def to_json(self) -> JSON:
        """Return the difference for machines."""
        return asdict(self)


def diff(
    a: FederatedSplit | str | Path,
    b: FederatedSplit | str | Path,
    *,
    reading: Reading | None = None,
) -> Difference:
    """Compare two splits: recipe, source, who holds what, columns and skew.

    Rows are compared where the data has the same labels in the same order.

    Parameters
    ----------
    a, b : FederatedSplit, str or Path
        Splits, or split files, which are read as `niidpart.read` does.
    reading : {"sample", "proportions", "rough-proportions"}, optional
        What the counts of the parties of both are taken for, as by `niidpart.measure_skew`. By
        default what their recipes say; where one of them says nothing, as of an imported split,
        plain values are compared.

    Returns
    -------
    Difference

    Raises
    ------
    SplitError
        A file is no valid split.

    Examples
    --------
    >>> import niidpart, numpy as np
    >>> labels = np.arange(100) % 4
    >>> a = niidpart.make(labels, "homo", n_parties=5, seed=1)
    >>> b = niidpart.make(labels, "homo", n_parties=5, seed=2)
    >>> found = niidpart.diff(a, b)
    >>> found.same, found.recipe
    (False, {'seed': (1, 2)})
    """
    a, b = _read_if_path(a), _read_if_path(b)
    if a.digest == b.digest:
        return _build_sameness(a, reading)
    skew_of_a = _measure(a, reading)
    skew_of_b = _measure(b, reading)
    skew_by = _choose_number(skew_of_a, skew_of_b)
    why_not = _why_not_rows(a, b)
    return Difference(
        same=False,
        digests=(a.digest, b.digest),
        recipe=_compare_fields(a.recipe.to_json(), b.recipe.to_json()),
        source=_compare_fields(a.source.to_json(), b.source.to_json()),
        why_not=why_not,
        parts={} if why_not else _compare_all_parts(a, b),
        columns=_compare_columns(a, b),
        skew=_compare_skew(skew_of_a, skew_of_b, skew_by),
        skew_by=skew_by,
    )


def _build_sameness(split: FederatedSplit, reading: Reading | None) -> Difference:
    """Return what two splits have in common that have the digest of this one: all.

    The digests are of what was read and not those that files state, so nothing else is looked at.
    """
    known_reading = reading or find_reading(split.recipe)
    parts = {name: describe_same_part(part) for name, part in split.parts.items() if part.n}
    return Difference(
        same=True,
        digests=(split.digest, split.digest),
        recipe={},
        source={},
        why_not="",
        parts=parts,
        columns={},
        skew={},
        skew_by="value" if known_reading is None else "corrected",
    )


def _read_if_path(split: FederatedSplit | str | Path) -> FederatedSplit:
    if isinstance(split, FederatedSplit):
        return split
    require_type("a split to compare", split, (str, Path), "a FederatedSplit or a path")
    return read(split)


def _why_not_rows(a: FederatedSplit, b: FederatedSplit) -> str:
    """Return why rows of the two splits cannot be compared, "" where they can."""
    if a.source.n != b.source.n:
        return f"the data sets have {a.source.n} and {b.source.n} examples"
    same_labels = a.source.labels_sha256 == b.source.labels_sha256
    if not same_labels or a.source.class_names != b.source.class_names:
        n = a.source.n
        return f"the data sets have {n} examples each, but other labels, or in another order"
    return ""


def _compare_fields(a: JSON, b: JSON, prefix: str = "") -> Changes:
    """Compare field by field; the options of strategy and source one by one."""
    changes: Changes = {}
    for key in dict.fromkeys([*a, *b]):
        x, y = a.get(key), b.get(key)
        if isinstance(x, dict) and isinstance(y, dict):
            changes |= _compare_fields(x, y, f"{prefix}{key}.")
        elif x != y:
            changes[f"{prefix}{key}"] = (x, y)
    return changes


def _compare_all_parts(a: FederatedSplit, b: FederatedSplit) -> dict[str, PartDifference]:
    found = {}
    for name, part in a.parts.items():
        other = b.parts[name]
        if part.n or other.n:
            found[name] = compare_parts(part, other)
    return found


def _compare_columns(a: FederatedSplit, b: FederatedSplit) -> dict[str, int | None]:
    changes: dict[str, int | None] = {}
    for name in dict.fromkeys([*a.columns, *b.columns]):
        x = a.columns.get(name)
        y = b.columns.get(name)
        if x is None or y is None or x.shape != y.shape:
            changes[name] = None
        elif digest_array(x) != digest_array(y):
            changes[name] = int((x != y).sum())
    return changes


def _measure(split: FederatedSplit, reading: Reading | None) -> Skew:
    return split.skew if reading is None else measure_skew(split, reading)


def _choose_number(a: Skew, b: Skew) -> Literal["corrected", "value"]:
    """Return what two splits are compared by.

    Where nobody knows whether chance is in the counts of one, neither is corrected for it.
    """
    return "value" if a.reading is None or b.reading is None else "corrected"


def _compare_skew(a: Skew, b: Skew, skew_by: Literal["corrected", "value"]) -> Changes:
    changes: Changes = {"map_beta": (a.map_beta_overall, b.map_beta_overall)}
    in_a = _list_numbers(a, skew_by)
    in_b = _list_numbers(b, skew_by)
    for key in dict.fromkeys([*in_a, *in_b]):
        changes[key] = (in_a.get(key), in_b.get(key))
    return changes


def _list_numbers(skew: Skew, skew_by: Literal["corrected", "value"]) -> dict[str, float]:
    return {f"{m.name} {m.form}".strip(): getattr(m, skew_by) for m in skew.measures}
