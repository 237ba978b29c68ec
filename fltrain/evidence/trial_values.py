"""The values of trials: read of runs, and their mean with its deviation and interval."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from .intervals import MeanInterval, compute_interval
from .measures import RunMeasure
from .records import RunRecord


@dataclass(frozen=True)
class ValueSummary:
    """The values of trials.

    Parameters
    ----------
    n : int
        Runs that have the value.
    mean, std : float or None
        None where one of the runs that were asked for has none, unless parts were asked for; the
        sample deviation (over n - 1) also for a single run.
    interval : MeanInterval or None
        Of the mean; None where there is no deviation, or runs differ in more than seeds.
    """

    n: int
    mean: float | None
    std: float | None
    interval: MeanInterval | None


def read_values(
    records: Sequence[RunRecord], measure: RunMeasure, failed_as: float | None
) -> list[float | None]:
    """Return the value of each run; None for one that is not done, or has none."""
    values: list[float | None] = []
    for record in records:
        if record.state == "done":
            values.append(read_finite(measure, record))
        elif record.state == "failed" and not measure.is_cost:
            values.append(failed_as)
        else:
            values.append(None)
    return values


def read_finite(measure: RunMeasure, record: RunRecord) -> float | None:
    """Return the value of a run; None also for what is no number, of which there is no mean."""
    value = measure.read(record)
    if value is None or not math.isfinite(value):
        return None
    return value


def summarise_values(
    values: Sequence[float | None], partial: bool, *, is_mixed: bool
) -> ValueSummary:
    """Return the mean of trials with its deviation and interval; of a part only if `partial`."""
    known = [value for value in values if value is not None]
    n = len(known)
    is_whole = n == len(values)
    if n == 0 or not (is_whole or partial):
        return ValueSummary(n, None, None, None)
    mean = statistics.fmean(known)
    deviation = statistics.stdev(known) if n > 1 else None
    interval = None if is_mixed else compute_interval(known)
    return ValueSummary(n, mean, deviation, interval)
