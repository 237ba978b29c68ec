"""What parties of one kind have together: a metric of parties, averaged by a column of the split.

Such a column is FedCD's archetype, or what a strategy of one's own says of each party. Where
parties have unlike models, each model is a kind too.
"""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import niidpart
from niidpart.errors import UsageError
from niidpart.registry import did_you_mean
from niidpart.splits.recipe import JSON

from ..libraries import list_models
from .configuration import PARTY_MODELS
from .metric_names import History


def find_kinds(split_file: Path, column: str) -> list[Any]:
    """Return the value that each party of a split has in a column.

    UsageError where the split has no such column.
    """
    columns = niidpart.read(split_file).columns
    if column not in columns:
        known = ", ".join(columns) if columns else "none"
        guess = (
            did_you_mean(column, columns) if columns else "strategies like hierarchical make some"
        )
        raise UsageError(
            f"the split {split_file} has no column {column!r} (it has {known}); {guess}"
        )
    kinds: list[Any] = columns[column].tolist()
    return kinds


def list_own_models(config: JSON) -> list[str] | None:
    """Return the name of each party's model; None of a run where all have one."""
    if PARTY_MODELS not in config:
        return None
    full = list_models(config["model"])
    names = [Path(name).name for name in full]
    if len(set(names)) < len(set(full)):  # files of one name in two folders
        names = full
    return [names[place] for place in config[PARTY_MODELS]]


def average_by_kind(
    history: History, metric: str, kinds: Sequence[Any]
) -> dict[Any, list[tuple[int, float]]]:
    """Return the mean of a metric over the parties of each kind, by round.

    metric: that has a value for each party. Parties without one are left out, and so are rounds
    where no party of the kind has any. UsageError where no round has a list of all parties.
    """
    rounds = [(metrics["round"], metrics.get(metric)) for metrics in history]
    lists = [(round, value) for round, value in rounds if isinstance(value, list)]
    if all(value is None for _, value in rounds):
        raise UsageError(
            f"no round has {metric}: of test parts it takes a split that has some (niidpart make "
            "--test 0.2), of validation parts --val 0.2"
        )
    if not lists or any(len(value) != len(kinds) for _, value in lists):
        raise UsageError(
            f"{metric} is no metric of each party; party_test_accuracy is one, of a split with "
            "test parts (--test 0.2)"
        )
    averages: dict[Any, list[tuple[int, float]]] = {kind: [] for kind in sorted(set(kinds))}
    for round, values in lists:
        for kind, mean in _average(values, kinds).items():
            averages[kind].append((round, mean))
    return averages


def _average(values: Sequence[float | None], kinds: Sequence[Any]) -> Mapping[Any, float]:
    """Return the mean of the values that are known, by kind."""
    parted: dict[Any, list[float]] = {}
    for kind, value in zip(kinds, values, strict=True):
        if value is not None:
            parted.setdefault(kind, []).append(value)
    return {kind: statistics.fmean(of_kind) for kind, of_kind in parted.items()}


def sort_kind(kind: str) -> tuple[bool, float, str]:
    """Return what kinds are sorted by: numbers by their size, then names."""
    is_whole = kind.isdigit()
    return not is_whole, float(kind) if is_whole else 0.0, kind
