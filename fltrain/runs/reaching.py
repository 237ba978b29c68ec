"""How far a run is when it reaches a value, or settles. Needs no torch."""

import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from niidpart.errors import UsageError

from ..settings.stopping import StopRule, parse_stop_rule
from .metric_names import History
from .points import Along, list_places

# When a metric counts as settled: these are ours, since papers that speak of convergence give none.
TOLERANCE = 0.02
LAST = 10  # rounds that are evaluated


def measure_way(history: History, rule: StopRule, along: Along = "rounds") -> float | None:
    """Return how far a run is when it first reaches a value; None where it never does.

    history: as `read_history` gives it, where seconds are asked for.
    """

    def is_reached(value: float) -> bool:
        return value <= rule.value if rule.is_ceiling else value >= rule.value

    values = list_values(history, rule.metric)
    return _find_place(history, [(at, is_reached(value)) for at, value in values], along)


def measure_settling(
    history: History,
    metric: str,
    along: Along = "rounds",
    *,
    tolerance: float = TOLERANCE,
    last: int = LAST,
) -> float | None:
    """Return how far a run is when a metric has settled; None where it has not.

    It has from the first round on after which it stays within a tolerance of its mean over the last
    rounds, of which there must be as many. last: how many that are evaluated.
    """
    values = list_values(history, metric)
    if len(values) < last:
        return None
    end = statistics.fmean(value for _, value in values[-last:])
    is_near = [abs(value - end) <= tolerance for _, value in values]
    first = len(values)
    while first > 0 and is_near[first - 1]:
        first -= 1
    if len(values) - first < last:
        return None
    settled = [(at, place >= first) for place, (at, _) in enumerate(values)]
    return _find_place(history, settled, along)


def measure_end(history: History, metric: str, along: Along = "rounds") -> float | None:
    """Return how far a run is in the last round that has a metric; None where none has it."""
    values = list_values(history, metric)
    return list_places(history, along)[values[-1][0]] if values else None


def aim_at_end(history: History, metric: str) -> StopRule:
    """Return the rule that is reached where another run is as good as this one in the end.

    UsageError where this one has no such number.
    """
    values = list_values(history, metric)
    if not values:
        raise UsageError(f"the run that others are held against has no {metric}")
    return parse_stop_rule(f"{metric}={values[-1][1]!r}")


def list_values(history: History, metric: str) -> list[tuple[int, float]]:
    """Return the rounds that have a metric as a number: their places in the history, and it."""
    found = [(at, metrics.get(metric)) for at, metrics in enumerate(history)]
    return [(at, float(value)) for at, value in found if isinstance(value, int | float)]


def measure_changes(history: History, metric: str) -> list[tuple[int, float]]:
    """Return by how much a metric differs from the evaluated round before, by round.

    Of a metric that parties have one by one it is the mean over those that have it in both rounds.
    """
    found: list[tuple[int, list[float | None]]] = []
    for metrics in history:
        value: Any = metrics.get(metric)
        if value is not None:
            found.append((metrics["round"], value if isinstance(value, list) else [value]))
    changes = []
    for (_, before), (round, after) in pairwise(found):
        sizes = _list_sizes(before, after)
        if sizes:
            changes.append((round, statistics.fmean(sizes)))
    return changes


def _list_sizes(before: Sequence[float | None], after: Sequence[float | None]) -> list[float]:
    pairs = zip(before, after, strict=True)
    return [abs(b - a) for a, b in pairs if a is not None and b is not None]


def _find_place(
    history: History, is_there: Sequence[tuple[int, bool]], along: Along
) -> float | None:
    """Return how far a run is in the first round that is marked. is_there: by place."""
    first = next((at for at, is_so in is_there if is_so), None)
    return None if first is None else list_places(history, along)[first]
