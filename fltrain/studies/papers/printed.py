"""Numbers that a paper prints, as its study's file has them. Needs no torch.

```toml
[[printed]]
shows = "Table III"              # where they stand
by = ["split", "algorithm"]      # the axes that tell cells apart, outermost first
columns = ["fedavg", "fedprox"]  # values of the last axis, where cells are lists
metric = "test_accuracy"         # unless given; as `fltrain table --metric` takes it
best = false                     # true: of all rounds the best, not the last
best_of = "mu"                   # the paper prints the best of these, chosen on the test set
group = "skew"                   # of the plan, where it has groups
factor = 1e-6                    # ours times this is what is printed; 100 for accuracies, else 1
[printed.cells]
"niid/mnist-dir0.5" = ["98.9 ± 0.1", "98.9"]   # with the digits that are printed; "" for none
"niid/mnist-c1" = { fedavg = "29.8 ± 7.9" }    # or each by its value on the last axis
```
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from niidpart.errors import UsageError
from niidpart.registry import did_you_mean

from ...evidence.measures import METRIC
from ...runs.metric_names import is_percentage

_WORDS = ("shows", "by", "columns", "metric", "best", "best_of", "group", "factor", "cells")
_PERCENT = 100.0


@dataclass(frozen=True)
class PrintedNumber:
    """A number of a paper. std: None where none is printed. unit: of its last digit."""

    mean: float
    std: float | None
    unit: float

    @property
    def deviation(self) -> float | None:
        """What counts as one deviation: one printed as 0.0 may be half a unit."""
        return None if self.std is None else max(self.std, self.unit / 2)

    def __str__(self) -> str:
        digits = _count_digits(self.unit)
        mean = f"{self.mean:.{digits}f}"
        return mean if self.std is None else f"{mean} ± {self.std:.{digits}f}"


@dataclass(frozen=True)
class PrintedTable:
    """A table of a paper. cells: its numbers by their values on the axes `by`."""

    shows: str
    by: tuple[str, ...]
    metric: str
    best: bool
    best_of: str
    group: str
    factor: float
    cells: Mapping[tuple[str, ...], PrintedNumber]


def read_printed(tables: Sequence[Mapping[str, Any]]) -> list[PrintedTable]:
    """Return the tables that the file of a study has.

    UsageError for a word that there is not, and for what is no number.
    """
    return [_read_table(table) for table in tables]


def _read_table(table: Mapping[str, Any]) -> PrintedTable:
    for word in table:
        if word not in _WORDS:
            raise UsageError(f"[[printed]] has no word {word!r}; {did_you_mean(word, _WORDS)}")
    by = tuple(table["by"])
    metric = table.get("metric", METRIC)
    usual = _PERCENT if is_percentage(metric) else 1.0
    walked = _walk(table["cells"], len(by), table.get("columns", ()))
    cells = {place: _read_number(text) for place, text in walked if text}
    return PrintedTable(
        shows=table["shows"],
        by=by,
        metric=metric,
        best=table.get("best", False),
        best_of=table.get("best_of", ""),
        group=table.get("group", ""),
        factor=float(table.get("factor", usual)),
        cells=cells,
    )


def _walk(cells: Any, depth: int, columns: Sequence[Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each cell of nested tables, with its place."""
    if depth == 0:
        yield (), str(cells)
        return
    if depth == 1 and isinstance(cells, list):
        if len(cells) != len(columns):
            raise UsageError(f"[[printed]] has {cells!r}, and {len(columns)} columns")
        cells = dict(zip(columns, cells, strict=True))
    if not isinstance(cells, Mapping):
        raise UsageError(f"[[printed]] has {cells!r} where a table of values on an axis is needed")
    for value, inner in cells.items():
        for place, text in _walk(inner, depth - 1, columns):
            yield (str(value), *place), text


def _read_number(text: str) -> PrintedNumber:
    """Return the number of `98.9 ± 0.1`."""
    mean, _, std = (part.strip() for part in text.partition("±"))
    digits = len(mean.partition(".")[2])
    try:
        return PrintedNumber(float(mean), float(std) if std else None, 10.0**-digits)
    except ValueError as error:
        raise UsageError(f"a printed number is {text!r}; write it as '98.9 ± 0.1'") from error


def _count_digits(unit: float) -> int:
    """Return how many digits stand behind the point."""
    return max(0, len(f"{unit:f}".rstrip("0").partition(".")[2]))
