"""What a run minimises and what it is measured by, as they were asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from niidpart.errors import UsageError
from niidpart.registry import resolve_function
from niidpart.splits.recipe import JSON

from ..disk.plain_folder import RunError
from ..metrics import Metric, MetricFunction, resolve_metrics
from ..tasks.losses import OwnFunction

METRIC_NAMES = "metric_names"  # in config.json where a metric is a function, which has no spec
AskedMetrics = str | MetricFunction | Sequence[str | MetricFunction]


@dataclass(frozen=True, eq=False)
class Objective:
    """A loss and metrics.

    loss: None for cross entropy, `file.py:function`, or a function. metrics: besides accuracy and
    loss.
    """

    loss: str | OwnFunction | None = None
    metrics: Sequence[Metric] = ()

    def describe(self) -> JSON:
        """Return what config.json says of it: nothing of what was not asked for.

        A function of Python has no name to find it by, and is ""; what a metric is called in the
        metrics of a round stands beside it.
        """
        said: dict[str, Any] = {}
        if self.loss is not None:
            said["loss"] = self.loss if isinstance(self.loss, str) else ""
        if self.metrics:
            said["metrics"] = [metric.spec for metric in self.metrics]
        if any(not metric.spec for metric in self.metrics):
            said[METRIC_NAMES] = [metric.name for metric in self.metrics]
        return said


def resolve_objective(loss: str | OwnFunction | None, metrics: AskedMetrics) -> Objective:
    """Return an objective. UsageError for a metric that there is not."""
    if isinstance(loss, str):
        loss = resolve_function(loss)
    return Objective(loss, resolve_metrics(metrics))


def restore_objective(
    path: Path, config: JSON, loss: OwnFunction | None, metrics: AskedMetrics
) -> Objective:
    """Return the objective that a run folder says.

    loss, metrics: handed over where the run was started with functions, which have no name.
    RunError where one of them is missing.
    """
    asked = config.get("loss")
    if asked == "" and loss is None:
        raise RunError(
            f"{path} was started with a loss that has no name; "
            "fltrain.resume(folder, loss=...) takes it"
        )
    if loss is not None and asked != "":
        said = "cross entropy" if asked is None else asked
        raise UsageError(f"{path} was started with the loss {said}; leave loss out")
    specs = config.get("metrics", [])
    given = resolve_metrics(metrics)
    if given:
        _require_same_metrics(path, config, given)
    if not given and "" in specs:
        raise RunError(
            f"{path} was started with metrics that have no name; "
            "fltrain.resume(folder, metrics=...) takes them"
        )
    return Objective(asked or loss, given or resolve_metrics(specs))


def _require_same_metrics(path: Path, config: JSON, given: Sequence[Metric]) -> None:
    """Raise UsageError where other metrics are handed over, or in another order."""
    now = [metric.name for metric in given]
    specs: list[str] = config.get("metrics", [])
    # A folder of an earlier version does not say what functions are called.
    names: list[str] | None = config.get(METRIC_NAMES)
    is_same = [metric.spec for metric in given] == specs
    if is_same and names in (None, now):
        return
    then = ", ".join(names or specs) or "no metrics besides accuracy and loss"
    raise UsageError(
        f"{path} was started with {then}, and {', '.join(now)} {'is' if len(now) == 1 else 'are'} "
        "handed over; its rounds would have two sets of metrics: give those, in that order"
    )
