"""Metrics by name, of models that are served: on the global test set, and at each party."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import tree
from ..inputs.examples import PartyExamples
from ..inputs.federated import Federated
from ..interface import Served
from ..metrics import Metric
from ..tasks.model_task import ModelTask
from .scoring import predict

Value = float | list[float | None] | None


def measure_served(
    task: ModelTask, served: Served, data: Federated, metrics: Sequence[Metric]
) -> dict[str, Any]:
    """Return test_NAME and party_test_NAME (party_val_NAME) of each metric.

    With several models test_NAME is the mean over parties; without a global test set it is that of
    all parties' own test parts taken together. {} without metrics.
    """
    if not metrics:
        return {}
    parts = {"test": data.test, "val": data.val}
    logits = {
        name: _predict_parties(task, served, part) for name, part in parts.items() if len(part.y)
    }
    values: dict[str, Any] = {}
    if data.global_test is not None:
        values |= _measure_globally(task, served, data.global_test, metrics)
    elif "test" in logits:
        answers = torch.cat([one for one in logits["test"] if one is not None])
        for metric in metrics:
            values[f"test_{metric.name}"] = metric.measure(answers, data.test.y)
    for name, of_parties in logits.items():
        for metric in metrics:
            values |= _measure_parties(
                f"party_{name}_{metric.name}", metric, of_parties, data, parts[name]
            )
    return values


def _predict_parties(task: ModelTask, served: Served, part: PartyExamples) -> list[Tensor | None]:
    """Return the logits of each party's model on its own part, None where that is empty."""
    which = served.which.tolist()
    answers: list[Tensor | None] = []
    for party in range(len(part.indptr) - 1):
        start, end = part.indptr[party], part.indptr[party + 1]
        number = which[party] if len(which) > 1 else which[0]
        answer = None
        if end > start:
            models, buffers = tree.index(served.models, number), tree.index(served.buffers, number)
            answer = predict(task, models, buffers, part, start, end)
        answers.append(answer)
    return answers


def _measure_globally(
    task: ModelTask, served: Served, test: PartyExamples, metrics: Sequence[Metric]
) -> dict[str, Value]:
    """Measure each served model once; the mean counts it as often as it is served."""
    which = served.which.tolist()
    of_models: dict[int, list[Value]] = {}
    for number in sorted(set(which)):
        models, buffers = tree.index(served.models, number), tree.index(served.buffers, number)
        answers = predict(task, models, buffers, test, 0, len(test.y))
        of_models[number] = [metric.measure(answers, test.y) for metric in metrics]
    values: dict[str, Value] = {}
    for place, metric in enumerate(metrics):
        of_parties = [of_models[number][place] for number in which]
        values[f"test_{metric.name}"] = _average(of_parties)
    return values


def _average(values: Sequence[Value]) -> Value:
    """Return the mean of numbers, or of lists place by place; of those that are not None."""
    lists = [value for value in values if isinstance(value, list)]
    if lists:
        return [_average_numbers(column) for column in zip(*lists, strict=True)]
    return _average_numbers([value for value in values if not isinstance(value, list)])


def _average_numbers(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _measure_parties(
    name: str,
    metric: Metric,
    logits: Sequence[Tensor | None],
    data: Federated,
    part: PartyExamples,
) -> dict[str, Any]:
    """Return a metric of each party of the split, and what describes those there.

    {} for a metric that gives lists.
    """
    each: list[float | None] = []
    for party, answers in enumerate(logits):
        value = None
        if answers is not None:
            at = slice(part.indptr[party], part.indptr[party + 1])
            value = metric.measure(answers, part.y[at])
        if isinstance(value, list):
            return {}
        each.append(value)
    sizes = [part.size(party) for party in range(len(each))]
    described = describe_values(name, each, sizes, is_loss=metric.is_loss)
    return described | {name: data.spread(each)}


def describe_values(
    name: str, each: Sequence[float | None], sizes: Sequence[int], *, is_loss: bool = False
) -> dict[str, Any]:
    """Return a number of each party under `name`, and under name_... what describes those known.

    Mean, population standard deviation, 10th percentile and worst (of a loss, which is better
    small, 90th percentile and largest), the mean weighted by the parties' examples, and the Gini
    coefficient.
    """
    pairs = [(value, n) for value, n in zip(each, sizes, strict=True) if value is not None]
    described: dict[str, Any] = {name: list(each)}
    if not pairs:
        return described
    known = torch.tensor([value for value, _ in pairs], dtype=torch.float64)
    weights = torch.tensor([n for _, n in pairs], dtype=torch.float64)
    return described | {
        f"{name}_mean": float(known.mean()),
        f"{name}_std": float(known.std(correction=0)),
        f"{name}_p10": float(known.quantile(0.9 if is_loss else 0.1)),
        f"{name}_worst": float(known.max() if is_loss else known.min()),
        f"{name}_weighted": float((known * weights).sum() / weights.sum()),
        f"{name}_gini": _compute_gini(known),
    }


def _compute_gini(values: Tensor) -> float | None:
    """Return the mean difference of two values over twice their mean; 0 where all are equal.

    None where a value is below 0: it says nothing then.
    """
    if bool((values < 0).any()):
        return None
    n = len(values)
    total = float(values.sum())
    if total == 0:
        return 0.0
    # Sorted, the value with rank i (from 1) stands above i - 1 others and below n - i.
    ranks = torch.arange(1, n + 1, dtype=torch.float64)
    differences = float(((2 * ranks - n - 1) * values.sort().values).sum())
    return differences / (n * total)
