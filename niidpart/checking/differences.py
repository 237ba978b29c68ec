"""`diff`: what two splits have in common and what not, in recipe, source, who holds what, columns and skew."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..arithmetic.rng import Ints
from ..splitfile.reading import read
from ..splits.digests import digest_array
from ..splits.part import Part
from ..splits.recipe import JSON
from ..splits.split import FederatedSplit

RELABELLED = 1_000  # parties up to which the best matching of names is looked for: it takes time by the third power
Changes = dict[str, tuple[Any, Any]]  # field -> (in a, in b); None where one lacks it


@dataclass(frozen=True)
class PartDifference:
    """One part (train, val, test) of two splits of the same data.

    n: examples in each. only: rows that the part of one holds and the other's does not. moved: rows in both, at other parties. agreement:
    the share of rows in both that stay, if the parties of b are renamed as suits best; None above 1,000 parties. adjusted_rand: Hubert and
    Arabie, J. Classification 2 (1985), equation 5; 1 for the same groups under other names, 0 as by chance. Both None where no row is in
    both, or parties share rows.
    """

    n: tuple[int, int]
    only: tuple[int, int]
    moved: int
    agreement: float | None
    adjusted_rand: float | None


@dataclass(frozen=True)
class Difference:
    """What `diff(a, b)` found. Each pair is (of a, of b).

    same: equal digests. recipe, source: the fields that differ; those of options have a dot (`params.beta`). why_not: why rows cannot be
    compared, "" where they can; then `parts` is empty. columns: name -> how many parties have another value, None where the numbers of
    parties differ or one lacks it. skew: measure (with its form, and `map_beta`) -> values, corrected for chance.
    """

    same: bool
    digests: tuple[str, str]
    recipe: Changes
    source: Changes
    why_not: str
    parts: dict[str, PartDifference]
    columns: dict[str, int | None]
    skew: Changes

    def to_json(self) -> JSON:
        return asdict(self)


def diff(a: FederatedSplit | str | Path, b: FederatedSplit | str | Path) -> Difference:
    """What differs between two splits, or split files. Rows are compared where the data has the same labels in the same order."""
    a, b = (s if isinstance(s, FederatedSplit) else read(s) for s in (a, b))
    why_not = _why_rows_differ(a, b)
    return Difference(
        same=a.digest == b.digest,
        digests=(a.digest, b.digest),
        recipe=_changes(a.recipe.to_json(), b.recipe.to_json()),
        source=_changes(a.source.to_json(), b.source.to_json()),
        why_not=why_not,
        parts={}
        if why_not
        else {
            name: part_difference(a.parts[name], b.parts[name])
            for name in a.parts
            if a.parts[name].n or b.parts[name].n
        },
        columns=_columns(a, b),
        skew=_skew(a, b),
    )


def _why_rows_differ(a: FederatedSplit, b: FederatedSplit) -> str:
    if a.source.n != b.source.n:
        return f"the data sets have {a.source.n} and {b.source.n} examples"
    if (
        a.source.labels_sha256 != b.source.labels_sha256
        or a.source.class_names != b.source.class_names
    ):
        return (
            f"the data sets have {a.source.n} examples each, but other labels, or in another order"
        )
    return ""


def _changes(a: JSON, b: JSON, prefix: str = "") -> Changes:
    """Field by field; the options of strategy and source one by one."""
    out: Changes = {}
    for key in [*a, *(k for k in b if k not in a)]:
        x, y = a.get(key), b.get(key)
        if isinstance(x, dict) and isinstance(y, dict):
            out |= _changes(x, y, f"{prefix}{key}.")
        elif x != y:
            out[f"{prefix}{key}"] = (x, y)
    return out


def part_difference(a: Part, b: Part) -> PartDifference:
    """Of two parts of the same data."""
    (rows_a, who_a), (rows_b, who_b) = _pairs(a), _pairs(b)
    if any((np.diff(rows) == 0).any() for rows in (rows_a, rows_b)):
        return _of_shared_rows(a, b, rows_a, who_a, rows_b, who_b)
    _, at_a, at_b = np.intersect1d(rows_a, rows_b, assume_unique=True, return_indices=True)
    mine, theirs = who_a[at_a], who_b[at_b]
    groups = [mine * b.n_parties + theirs, mine, theirs]
    agreement = adjusted = None
    if mine.size:
        cells, times = np.unique(groups[0], return_counts=True)
        adjusted = _adjusted_rand(times, np.bincount(mine), np.bincount(theirs))
        if max(a.n_parties, b.n_parties) <= RELABELLED:
            agreement = _best_match(cells, times, a.n_parties, b.n_parties) / len(mine)
    return PartDifference(
        (a.n, b.n),
        (a.n - len(mine), b.n - len(mine)),
        int((mine != theirs).sum()),
        agreement,
        adjusted,
    )


def _pairs(part: Part) -> tuple[Ints, Ints]:
    """(rows ascending, the party of each)."""
    who = np.repeat(np.arange(part.n_parties), part.sizes)
    order = np.argsort(part.indices, kind="stable")
    return part.indices[order].astype(np.int64), who[order]


def _of_shared_rows(
    a: Part, b: Part, rows_a: Ints, who_a: Ints, rows_b: Ints, who_b: Ints
) -> PartDifference:
    """Where parties share rows, a row has moved if other parties hold it: who names the groups has no one answer."""
    width = max(a.n_parties, b.n_parties)
    different = np.unique(np.setxor1d(rows_a * width + who_a, rows_b * width + who_b) // width)
    one, other = np.unique(rows_a), np.unique(rows_b)
    both = np.intersect1d(one, other, assume_unique=True)
    moved = int(np.isin(different, both, assume_unique=True).sum())
    return PartDifference(
        (a.n, b.n), (len(one) - len(both), len(other) - len(both)), moved, None, None
    )


def _adjusted_rand(cells: Ints, mine: Ints, theirs: Ints) -> float:
    """From the sizes of the groups' intersections, and of the groups. In python's whole numbers, which do not overflow."""
    together, in_a, in_b = (
        sum(n * (n - 1) // 2 for n in sizes.tolist()) for sizes in (cells, mine, theirs)
    )
    n = int(cells.sum())
    pairs = n * (n - 1) // 2
    room = (in_a + in_b) * pairs - 2 * in_a * in_b
    return 1.0 if room == 0 else 2 * (together * pairs - in_a * in_b) / room


def _best_match(cells: Ints, times: Ints, n_a: int, n_b: int) -> int:
    """The most rows that stay at their party under one renaming of the parties."""
    from scipy.optimize import linear_sum_assignment

    table = np.zeros((n_a, n_b), np.int64)
    table.reshape(-1)[cells] = times
    return int(table[linear_sum_assignment(table, maximize=True)].sum())


def _columns(a: FederatedSplit, b: FederatedSplit) -> dict[str, int | None]:
    out: dict[str, int | None] = {}
    for name in [*a.columns, *(n for n in b.columns if n not in a.columns)]:
        x, y = a.columns.get(name), b.columns.get(name)
        if x is None or y is None or x.shape != y.shape:
            out[name] = None
        elif digest_array(x) != digest_array(y):
            out[name] = int((x != y).sum())
    return out


def _skew(a: FederatedSplit, b: FederatedSplit) -> Changes:
    one, other = ({(m.name, m.form): m.corrected for m in s.skew.measures} for s in (a, b))
    found: Changes = {"map_beta": (a.skew.map_beta_overall, b.skew.map_beta_overall)}
    for key in [*one, *(k for k in other if k not in one)]:
        found[" ".join(filter(None, key))] = (one.get(key), other.get(key))
    return found
