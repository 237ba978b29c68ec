"""What the metrics of a run will be called, known before its first round."""

from collections.abc import Sequence
from typing import Any

from niidpart.errors import UsageError
from niidpart.registry import did_you_mean

from ..engine.jobs import Cell
from ..engine.measures import describe_values
from ..inputs.federated import Federated
from ..interface import Served, State
from ..metrics import METRICS, Metric
from ..settings.stopping import StopRule
from .evaluating import NEW
from .internals import INTERNAL
from .training_metrics import DRIFT, explain_no_drift, sketch_drift


def require_stop_metric(cell: Cell, state: State) -> None:
    """Raise UsageError where a run waits for a number that it will never write.

    state: before the first round. A function of the user's own may still turn out to give a list.
    """
    rule = cell.settings.stop_rule
    if rule is None:
        return
    expected = sketch_metrics(cell, state)
    if rule.metric not in expected:
        numbers = [name for name, value in expected.items() if not isinstance(value, list)]
        advice = _explain_absence(cell, rule) or did_you_mean(rule.metric, numbers)
        raise UsageError(f"stop-at waits for {rule.metric}, which this run does not have; {advice}")
    rule.refuse_list(expected)


def sketch_metrics(cell: Cell, state: State) -> dict[str, Any]:
    """Return the names of the metrics of an evaluated round, with a number or a list as it has.

    Without those of its training but for the loss and the drift of whole models.
    `engine/evaluation.py` measures them, and `internals.py` writes down what an algorithm says of
    its state.
    """
    algorithm = cell.algorithm
    sketch = {"train_loss": 0.0} | _sketch_served(cell, algorithm.serve(state, algorithm.hyper))
    if algorithm.personal is not None:
        own = _sketch_served(cell, algorithm.personal(state, algorithm.hyper))
        sketch |= {f"personal_{name}": value for name, value in own.items()}
    if cell.data.new_parties is not None:
        at_home = _sketch_home(cell.data.new_parties, cell.metrics)
        sketch |= {f"{NEW}{name}": value for name, value in at_home.items()}
    return sketch | sketch_drift(cell) | _sketch_internals(cell, state)


def _sketch_served(cell: Cell, served: Served) -> dict[str, Any]:
    data = cell.data
    if not cell.settings.validation_only:
        return _sketch_tests(cell, served) | _sketch_home(data, cell.metrics)
    return _sketch_home(data, cell.metrics)


def _sketch_tests(cell: Cell, served: Served) -> dict[str, Any]:
    """Return what is measured on the global test set, or all test parts taken together."""
    data = cell.data
    sketch: dict[str, Any] = {"test_accuracy": 0.0, "test_loss": 0.0}
    if len(served.which) > 1 and data.global_test is not None:
        sketch["test_accuracy_std"] = 0.0
    if data.noisy_test is not None:
        sketch["test_accuracy_noisy"] = 0.0
    for metric in cell.metrics:
        sketch[f"test_{metric.name}"] = [] if _gives_list(metric) else 0.0
    return sketch


def _sketch_home(data: Federated, metrics: Sequence[Metric]) -> dict[str, Any]:
    """Return what is measured on the parties' own parts."""
    sketch: dict[str, Any] = {}
    names = ["accuracy", *(metric.name for metric in metrics if not _gives_list(metric))]
    for part in ("test", "val"):
        if len(getattr(data, part).y):
            for name in names:
                sketch |= _sketch_parties(f"party_{part}_{name}")
    return sketch


def _sketch_parties(name: str) -> dict[str, Any]:
    return describe_values(name, each=[0.0], sizes=[1])


def _sketch_internals(cell: Cell, state: State) -> dict[str, Any]:
    """Return what the algorithm says of its own state, where it is asked to."""
    algorithm = cell.algorithm
    if algorithm.describe is None or not cell.settings.internals:
        return {}
    said = algorithm.describe(state, algorithm.hyper)
    return {f"{INTERNAL}{name}": [] if value.dim() else 0.0 for name, value in said.items()}


def _gives_list(metric: Metric) -> bool:
    """Return whether a metric says that it gives a list, which no party then has."""
    annotations = getattr(metric.compute, "__annotations__", {})
    return "list" in str(annotations.get("return"))


def _explain_absence(cell: Cell, rule: StopRule) -> str:
    """Return why a run lacks a metric that others have, and what to do; "" where nobody knows."""
    if rule.metric.startswith(NEW) and cell.data.new_parties is None:
        return "add --new-parties 0.2"
    if rule.metric.startswith("personal_") and cell.algorithm.personal is None:
        return f"{cell.algorithm.name} keeps no models of the parties' own"
    if rule.metric.startswith(INTERNAL) and cell.algorithm.describe is None:
        return f"{cell.algorithm.name} says nothing of its own state"
    if rule.metric.startswith(INTERNAL) and not cell.settings.internals:
        return "add --internals"
    if rule.metric.startswith(DRIFT):
        return explain_no_drift(cell)
    metric = rule.metric.removeprefix("personal_").removeprefix(NEW)
    if metric == "test_accuracy_noisy":
        return "add --noisy-test"
    if cell.settings.validation_only and "test_" in metric:
        return "it reads no test set (--validation-only): give party_val_accuracy_weighted"
    known = [one.name for one in cell.metrics]
    for name in METRICS.names():
        called = name.replace("-", "_")
        is_meant = metric.removeprefix("party_").startswith((f"test_{called}", f"val_{called}"))
        if is_meant and called not in known:
            return f"add --metrics {name}"
    return ""
