"""Features of a table whose columns are treated as a declaration says."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...arithmetic.exact import Floats
from ...arithmetic.rng import Ints
from ...arithmetic.words import Array
from ...errors import UsageError
from ...registry.hints import find_near
from ..lists import split_list
from ..readers.arrow_table import ArrowTable, require_finite
from ..readers.budget import Budget
from ..rows import Features, resolve_rows
from .columns_in_memory import (
    NumberColumn,
    count_missing,
    parse_categories,
    read_categories,
    read_kind,
    read_numbers,
)
from .declaration import NUMBER, Treatment, parse_columns
from .examination import ColumnLook, examine_column
from .fitting import AnyColumn, Fitted, apply, assemble, find_places, fit
from .marks import find_marks
from .refusal import describe_missing_words, describe_refusal

_NUMBER = 8  # bytes of a feature
_ROW = 8  # bytes of the number of a row


@dataclass(frozen=True)
class TableRows:
    """Some rows of a table, in this order: a training set or a test set."""

    table: ArrowTable
    rows: Ints

    @classmethod
    def of_all(cls, table: ArrowTable) -> "TableRows":
        """Return all rows of a table; FileFault where their numbers alone would take too much."""
        budget = Budget.of_files(table.files)
        budget.require(_ROW * table.n, f"the numbers of its {table.n:,} rows")
        return cls(table, np.arange(table.n))


@dataclass(frozen=True)
class ColumnPlan:
    """The columns that become features, and what is done with them.

    missing: words that stand for a missing value.
    """

    names: Sequence[str]
    treatments: Mapping[str, Treatment]
    missing: Collection[str]

    @classmethod
    def of(
        cls, names: Sequence[str], declared: Mapping[str, str] | None, missing: str | None
    ) -> "ColumnPlan":
        """Return the plan of options; UsageError for a column that is not among the features."""
        treatments = parse_columns(declared)
        strange = [name for name in treatments if name not in names]
        if strange:
            what = f"columns says what is done with {strange[0]!r}, which is no feature"
            near = find_near(strange[0], names)
            guess = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"{what}; the features are {', '.join(names) or 'none'}{guess}")
        return cls(names, treatments, frozenset(split_list(missing or "")))

    def find(self, name: str) -> Treatment:
        """Return what is done with a column."""
        return self.treatments.get(name, NUMBER)

    def read(self, table: ArrowTable, name: str) -> AnyColumn | None:
        """Return a column as its treatment needs it; None where that cannot be."""
        column = table.column(name)
        kind, treatment = read_kind(column.type), self.find(name)
        if kind is None:
            return None
        if kind != "text" and not treatment.code:
            return read_numbers(column, name)
        categories = read_categories(column, name, self.missing)
        if treatment.code:
            return categories
        # Texts become numbers where a fill says that they are; zip codes do not by themselves.
        return parse_categories(categories) if treatment.fill else None


class TreatedFeatures:
    """The features of a training set, and of a test set that is treated in the same way.

    The tables themselves are not kept: what their columns became is enough.
    """

    def __init__(self, plan: ColumnPlan, train: TableRows, test: TableRows | None):
        self._train = _RowsOfFiles(train.table.files, train.rows)
        self._test = None if test is None else _RowsOfFiles(test.table.files, test.rows)
        self._fitted: list[Fitted] = []
        self._of_train: list[Floats | Ints] = []  # what each row of each column becomes
        self._of_test: list[Floats | Ints] = []
        for name in plan.names:
            self._add(plan, name, train, test)

    def _add(self, plan: ColumnPlan, name: str, train: TableRows, test: TableRows | None) -> None:
        column = _read_feature(plan, name, train)
        fitted = fit(column, train.rows, plan.find(name))
        values = apply(fitted, column)
        self._fitted.append(fitted)
        self._of_train.append(values)
        if test is None:
            return
        other = _read_feature(plan, name, test)
        if test.table is not train.table:
            values = apply(fitted, other)
        self._of_test.append(values)

    @property
    def names(self) -> list[str]:
        """What the features are called, in their order."""
        names: list[str] = []
        for one in self._fitted:
            names += one.feature_names
        return names

    def make_features(self) -> tuple[Features, Features | None]:
        """Return the features of the training set and of the test set."""
        train = self._read_rows_of(self._train, self._of_train)
        if self._test is None:
            return train, None
        return train, self._read_rows_of(self._test, self._of_test)

    def _read_rows_of(self, part: "_RowsOfFiles", values: Sequence[Floats | Ints]) -> Features:
        width = find_places(self._fitted)[-1]

        def read_features(asked: Ints | slice) -> Array:
            places = resolve_rows(asked, len(part.rows))
            if part.files:
                what = f"{len(places)} examples of {width} features"
                budget = Budget.of_files(part.files)
                budget.require(len(places) * width * _NUMBER, what)
            return assemble(self._fitted, values, part.rows[places])

        return read_features


class _RowsOfFiles(NamedTuple):
    """Which rows of which files are read, [] of a table in memory."""

    files: Sequence[Path]
    rows: Ints


def _read_feature(plan: ColumnPlan, name: str, part: TableRows) -> AnyColumn:
    """Return a column whose numbers are finite in the rows of the part; UsageError elsewhere."""
    column = plan.read(part.table, name)
    assert column is not None, name  # find_untreated has looked
    if isinstance(column, NumberColumn):
        require_finite(column.numbers[part.rows], name, part.table, part.rows)
    return column


def find_untreated(plan: ColumnPlan, train: TableRows, test: TableRows | None) -> str:
    """Return why some columns are no features with what is declared, "" where all are."""
    looks: list[ColumnLook] = []
    marks: list[str] = []
    parts = [train] if test is None else [train, test]
    for name in plan.names:
        if all(_is_feature(plan, part, name) for part in parts):
            continue
        own = [mark for part in parts for mark in find_marks(part.table.column(name), name)]
        marks += own
        missing = {*plan.missing, *own}
        looks.append(_examine(train, name, missing))
    if not looks:
        return ""
    files = train.table.files
    file = str(files[0]) if files else ""
    if marks and all(_lacks_words_alone(plan.find(look.name), look) for look in looks):
        names = [look.name for look in looks]
        return describe_missing_words(names, sorted({*plan.missing, *marks}))
    words = dict.fromkeys([*sorted(plan.missing), *marks])  # those that were given stay
    return describe_refusal(looks, len(train.rows), list(words), file)


def _lacks_words_alone(treatment: Treatment, look: ColumnLook) -> bool:
    """Return whether a column is treated, and nothing but words for a missing value is in the way.

    look: of the column with these words as missing values.
    """
    return bool(treatment.fill) and look.type in ("number", "true/false")


def _is_feature(plan: ColumnPlan, part: TableRows, name: str) -> bool:
    """Return whether a column is one with what is declared, as far as that is known unread."""
    treatment = plan.find(name)
    if treatment == NUMBER:
        kind = read_kind(part.table.schema.field(name).type)
        return kind in ("number", "truth") and not part.table.count_missing(name)
    column = plan.read(part.table, name)
    if column is None:
        return False
    return bool(treatment.fill) or not count_missing(column, part.rows)


def _examine(train: TableRows, name: str, missing: Collection[str]) -> ColumnLook:
    """Return what the column holds, with the words that may stand for missing values as such."""
    import pyarrow as pa

    column = train.table.column(name)
    if len(train.rows) < train.table.n:
        column = column.take(pa.array(train.rows))
    return examine_column(column, name, missing)
