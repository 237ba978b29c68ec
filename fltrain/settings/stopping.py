"""When a run ends before its last round: `--stop-at accuracy=0.9`. Needs no torch."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from niidpart.errors import UsageError
from niidpart.registry.hints import find_near

_RULE = re.compile(r"([a-z][a-z0-9_-]*)(>=|<=|=)([^<>=]+)")
# Where parties are served different models, and not while they are served the same.
_AT_TIMES = "test_accuracy_std"
_OF_STATE = "internal_"
_OF_DRIFT = "drift_"
_OF_NEW = "new_test_"  # nothing is: new parties are measured at home
_TUNED = "finetuned_"
_OF_PARTIES = ("party_", "new_party_")
_MEASURED = ("test_", *_OF_PARTIES, "personal_", "train_", _OF_NEW, _TUNED)
_WHOLE_NAMES = (*_MEASURED, _OF_STATE, _OF_DRIFT)
# Endings of the names of metrics that are better small; what parties' values are described by comes
# behind the metric's own name.
_BETTER_SMALL = re.compile(
    r"_(loss|cross_entropy|calibration)(_mean|_p10|_worst|_weighted)?$|_(std|gini)$"
)
_BETTER_LARGE = re.compile(
    r"_(accuracy|accuracy_noisy|balanced_accuracy|macro_f1|auc)(_mean|_p10|_worst|_weighted)?$"
)
# Those whose direction is known, as they are asked for.
_KNOWN = (
    "accuracy",
    "loss",
    "balanced-accuracy",
    "macro-f1",
    "auc",
    "cross-entropy",
    "calibration",
)


@dataclass(frozen=True)
class StopRule:
    """A metric, and the value that ends a run once it is reached.

    is_ceiling: it is reached from above.
    """

    metric: str
    value: float
    is_ceiling: bool

    def is_reached(self, metrics: Mapping[str, Any]) -> bool:
        """Return whether a round's metrics reach the value.

        UsageError where the round was evaluated and has no such number. That is asked before the
        first round too, when nobody knows what a function of the user's own returns.
        """
        self.refuse_list(metrics)
        found = metrics.get(self.metric)
        if found is None:
            self._require_measured(metrics)
            return False
        if self.is_ceiling:
            return bool(found <= self.value)
        return bool(found >= self.value)

    def _require_measured(self, metrics: Mapping[str, Any]) -> None:
        # One of them is in every round that is evaluated, whatever it is measured on.
        is_evaluated = "test_accuracy" in metrics or "party_val_accuracy" in metrics
        if is_evaluated and self.metric not in metrics and not self.metric.endswith(_AT_TIMES):
            raise UsageError(
                f"stop-at waits for {self.metric}, which the round has not: a metric that gives a "
                "list is one of the global test set alone"
            )

    def refuse_list(self, metrics: Mapping[str, Any]) -> None:
        """Raise UsageError where the metric is no number, but has one for each party or class."""
        if not isinstance(metrics.get(self.metric), list):
            return
        if self.metric.removeprefix("personal_").startswith(_OF_PARTIES):
            raise UsageError(
                f"stop-at waits for {self.metric}, which has a value for each party; "
                f"give {self.metric}_mean or {self.metric}_worst"
            )
        raise UsageError(
            f"stop-at waits for {self.metric}, which has several values; give a metric that is one "
            "number, such as test_accuracy, or write one that returns a number"
        )


def parse_stop_rule(text: str) -> StopRule:
    """Return the rule of a text: METRIC=VALUE, METRIC>=VALUE or METRIC<=VALUE.

    accuracy is test_accuracy, and so on. With = a loss and a spread have to fall to the value, an
    accuracy to rise to it. UsageError for another text, and for what no run has while it trains.
    """
    match = _RULE.fullmatch(text.strip())
    value = _parse_number(match[3]) if match else None
    if match is None or value is None:
        raise UsageError(
            f"stop-at is {text!r}; it must be a metric and a value, such as accuracy=0.9, loss=0.3 "
            "or party_test_accuracy_worst=0.5 (docs/training.md lists them)"
        )
    name = match[1].replace("-", "_")
    if not name.startswith(_WHOLE_NAMES):
        name = f"test_{name}"
    _require_possible(name)
    if _BETTER_LARGE.search(name) and not 0 <= value <= 1:
        raise UsageError(
            f"stop-at is {text!r}, and {name} is a share from 0 to 1; give {name}={value / 100:g}"
        )
    return StopRule(name, value, is_ceiling=_find_direction(name, match[2], match[3]) == "<=")


def _require_possible(metric: str) -> None:
    """Raise UsageError for a metric that no run has while it trains."""
    if metric.startswith(_TUNED):
        raise UsageError(
            f"stop-at waits for {metric}, and fine-tuning comes after the last round, so a run "
            f"cannot stop at it; give {metric.removeprefix(_TUNED)}"
        )
    if metric.startswith(_OF_NEW):
        at_home = metric.replace(_OF_NEW, "new_party_test_", 1)
        raise UsageError(
            f"stop-at waits for {metric}, which no run has: new parties are measured at home; "
            f"give {at_home}_mean or {at_home}_worst"
        )


def _find_direction(name: str, sign: str, value: str) -> str:
    """Return <= for a value that is reached from above, >= for the others."""
    if sign != "=":
        return sign
    known = find_better_sign(name)
    if known:
        return known
    near = find_near(name.removeprefix("test_"), _KNOWN)
    guess = f"did you mean {near[0]}? if not, " if near else ""
    raise UsageError(
        f"stop-at: {guess}nobody says whether more or less of {name} is better; "
        f"give '{name}>={value}' or '{name}<={value}', or a metric whose direction is known: "
        f"{', '.join(_KNOWN)}"
    )


def find_better_sign(metric: str) -> str:
    """Return <= for a metric that is better small, >= for one better large, "" for others."""
    if _BETTER_SMALL.search(metric):
        return "<="
    return ">=" if _BETTER_LARGE.search(metric) else ""


def _parse_number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None
