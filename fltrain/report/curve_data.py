"""Curves for a page's scripts: the mean of each row with its deviation, and each run beside it."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from niidpart.splits.recipe import JSON

from ..runs.metric_names import History, is_percentage, list_metrics
from ..runs.points import Along, build_curve, list_places
from .page_runs import PageRun

# What readers look at first; others follow in the order of the logs.
_FIRST = ("test_accuracy", "train_loss", "party_test_accuracy_mean", "party_test_accuracy_worst")
_LEFT_OUT = ("round", "jobs", "steps", "bytes_")  # beginnings of what is no result
_ALWAYS = "lr"  # a metric that every round has: where its curve stands, all others may
_ALONG: tuple[Along, ...] = ("rounds", "bytes", "seconds")
_MOST_ROUNDS = 300  # of a curve; of more, so many evenly
MOST_NUMBERS = 220_000  # of all curves of a page

_Column = list[float | None]  # a value a round, None where there is none


@dataclass(frozen=True)
class CurveRow:
    """The runs of one curve."""

    label: str
    runs: Sequence[PageRun]

    @property
    def histories(self) -> list[History]:
        """What their rounds have measured."""
        return [run.history for run in self.runs]


def describe_curves(rows: Sequence[CurveRow], most: int = MOST_NUMBERS) -> tuple[JSON, list[str]]:
    """Return the curves of some rows, and which metrics the page has no room for.

    most: numbers, about, of all curves together.
    """
    held = [row for row in rows if row.runs]
    histories: list[History] = []
    for row in held:
        histories += row.histories
    metrics = _order_metrics(histories)
    shown, each = _choose_metrics(held, metrics, most)
    told: JSON = {
        "metrics": [_describe_metric(name) for name in shown],
        "rows": [_describe_row(row, shown) for row in rows],
        "runs": _describe_runs(rows, each),
    }
    n_shown = len(shown)
    return told, metrics[n_shown:]


def _order_metrics(histories: Sequence[History]) -> list[str]:
    """Return the metrics that are drawn, those that readers look for first."""
    there = list_metrics(histories)
    ordered = [name for name in _FIRST if name in there]
    for name in there:
        if name not in _FIRST:
            ordered.append(name)
    return [name for name in ordered if not name.startswith(_LEFT_OUT)]


def _choose_metrics(
    rows: Sequence[CurveRow], metrics: Sequence[str], most: int
) -> tuple[list[str], list[str]]:
    """Return the metrics that there is room for: of rows, and of each run of rows with several."""
    of_rows = 0
    of_runs = 0
    for row in rows:
        points = [_count_points(history) for history in row.histories]
        of_rows += points[0]
        if len(points) > 1:
            of_runs += sum(points)
    # Each has three axes; a row has a mean and a deviation of a metric, a run a value.
    left = most - 3 * of_rows
    a_metric = 2 * of_rows
    n_shown = left // max(a_metric, 1)
    n_shown = max(1, n_shown)
    shown = list(metrics[:n_shown])
    left -= a_metric * len(shown)
    left -= 3 * of_runs
    n_each = left // max(of_runs, 1)
    n_each = max(0, n_each)
    return shown, shown[:n_each]


def _count_points(history: History) -> int:
    return min(len(history), _MOST_ROUNDS)


def _describe_metric(name: str) -> JSON:
    title = name.replace("_", " ")
    if is_percentage(name):
        return {"name": name, "title": f"{title} (%)", "scale": 100}
    return {"name": name, "title": title, "scale": 1}


def _describe_row(row: CurveRow, metrics: Sequence[str]) -> JSON:
    n = len(row.runs)
    named = {"label": row.label, "n": n}
    if n == 0:
        return named | {"x": {"rounds": []}, "y": {}, "d": {}}
    histories = row.histories
    places = {}
    for along in _ALONG:
        every = build_curve(histories, _ALWAYS, along)
        places[along] = every.x
    rounds = places["rounds"]
    y, deviation = {}, {}
    for metric in metrics:
        curve = build_curve(histories, metric, "rounds")
        if curve.x:
            y[metric] = _align(rounds, curve.x, curve.y)
        if n > 1:
            spread = [statistics.stdev(values) for values in curve.values]
            deviation[metric] = _align(rounds, curve.x, spread)
    columns = {"y": y, "d": deviation}
    return named | _thin(places, columns)


def _describe_runs(rows: Sequence[CurveRow], metrics: Sequence[str]) -> list[JSON]:
    found = []
    for number, row in enumerate(rows):
        if len(row.runs) < 2 or not metrics:
            continue
        for run in row.runs:
            history = run.history
            places = {along: list_places(history, along) for along in _ALONG}
            columns = {"y": _list_values(history, metrics)}
            named = {"label": run.folder.name, "row": number}
            told = named | _thin(places, columns)
            found.append(told)
    return found


def _list_values(history: History, metrics: Sequence[str]) -> JSON:
    """Return the values of each metric that a run has."""
    values = {}
    for metric in metrics:
        of_rounds = [one.get(metric) for one in history]
        if any(value is not None for value in of_rounds):
            values[metric] = of_rounds
    return values


def _align(rounds: Sequence[float], some: Sequence[float], values: Sequence[float]) -> _Column:
    """Return a value for each round, None where it has none."""
    by_round = dict(zip(some, values, strict=True))
    return [by_round.get(round) for round in rounds]


def _thin(places: Any, columns: Any) -> JSON:
    """Return places and columns with few digits, and of long ones some evenly, the last always."""
    chosen = _choose_rounds(len(places["rounds"]))
    x = _shorten_all(places, chosen)
    megabytes: list[float | None] = []
    for n_bytes in x["bytes"]:
        size = None if n_bytes is None else n_bytes / 1e6
        megabytes.append(size)
    x["bytes"] = _shorten_list(megabytes)
    thinned: JSON = {"x": x}
    for key, of_metrics in columns.items():
        thinned[key] = _shorten_all(of_metrics, chosen)
    return thinned


def _choose_rounds(n: int) -> list[int]:
    """Return the places of rounds that are drawn: all of few, some evenly of many."""
    if n <= _MOST_ROUNDS:
        return list(range(n))
    step = (n - 1) / (_MOST_ROUNDS - 1)
    return [round(place * step) for place in range(_MOST_ROUNDS)]


def _shorten_all(columns: Mapping[str, _Column], chosen: Sequence[int]) -> dict[str, _Column]:
    """Return the chosen values of each column."""
    short = {}
    for name, values in columns.items():
        picked: list[float | None] = []
        for place in chosen:
            # Where times are not known from some round on, there are fewer places than rounds.
            is_known = place < len(values)
            value = values[place] if is_known else None
            picked.append(value)
        short[name] = _shorten_list(picked)
    return short


def _shorten_list(values: _Column) -> _Column:
    return [None if value is None else shorten_number(value) for value in values]


def shorten_number(value: float) -> float:
    """Return a number with six digits at most, a whole one as such: a page draws no more."""
    short = float(f"{value:.6g}")
    return int(short) if short == int(short) else short
