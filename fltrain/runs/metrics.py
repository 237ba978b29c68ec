"""The names of a round's metrics. Needs no torch."""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

from niidpart.splits.recipe import JSON

DRIFT_NORM, DRIFT_COSINE = "drift_norm", "drift_cosine"


class RoundMetrics(TypedDict, total=False):
    """The metrics of a round, as `metrics.jsonl` has them; docs/training.md says what they are.

    The first five and the bytes are always there; the others in rounds that are evaluated, where
    the run has them. Models that parties keep for themselves have those of `test_accuracy` to
    `party_val_accuracy_gini` again, under names that begin with personal_. With
    `--finetune` the last round has those of the parties' parts once more, as finetuned_, and with
    `--calibrate` all of what is served, as calibrated_. Parties that are held out have theirs as
    new_party_test_accuracy and so on, also finetuned_. Those that `--metrics` asks for are beside
    them, test_NAME and party_test_NAME. With `--drift layers` there are
    drift_norm.LAYER and drift_cosine.LAYER, too.
    """

    round: int
    lr: float
    jobs: int
    steps: int
    train_loss: float | None
    bytes_down: int
    bytes_up: int
    bytes_party_down: int
    bytes_party_up: int
    bytes_table4: int
    drift_norm: list[float | None]
    drift_cosine: list[float | None]
    drift_norm_mean: float | None
    drift_cosine_mean: float | None
    test_accuracy: float | None
    test_loss: float | None
    test_accuracy_std: float | None
    test_accuracy_noisy: float | None
    party_test_accuracy: list[float | None]
    party_test_accuracy_mean: float | None
    party_test_accuracy_std: float | None
    party_test_accuracy_p10: float | None
    party_test_accuracy_worst: float | None
    party_test_accuracy_weighted: float | None
    party_test_accuracy_gini: float | None
    party_val_accuracy: list[float | None]
    party_val_accuracy_mean: float | None
    party_val_accuracy_std: float | None
    party_val_accuracy_p10: float | None
    party_val_accuracy_worst: float | None
    party_val_accuracy_weighted: float | None
    party_val_accuracy_gini: float | None


def as_metrics(values: Mapping[str, Any]) -> RoundMetrics:
    """Return the same values, from a file or an evaluation, which name metrics by strings."""
    return cast(RoundMetrics, values)


def replace_nan(metrics: JSON, round: int) -> JSON:
    """Return the metrics with None for NaN, which JSON does not have, and warn."""
    numbers = {name: value for name, value in metrics.items() if isinstance(value, float)}
    not_finite = [name for name, value in numbers.items() if not math.isfinite(value)]
    if not_finite:
        warnings.warn(
            f"round {round}: {', '.join(not_finite)} not finite: the model's answers overflow; "
            "try a lower learning rate",
            stacklevel=3,
        )
    return metrics | dict.fromkeys(not_finite)


def warn_of_empty(asked: Sequence[str], history: Sequence[Mapping[str, Any]]) -> None:
    """Warn of metrics that had no value on the global test set in any round of a finished run.

    asked: their own names.
    """
    for metric in asked:
        name = f"test_{metric}"
        values = [metrics.get(name) for metrics in history if name in metrics]
        if values and all(value is None for value in values):
            warnings.warn(
                f"the metric {metric} gave no finite number for the test set in any round: "
                f"{name} is null throughout; a metric returns a number or a list of numbers",
                stacklevel=3,
            )
