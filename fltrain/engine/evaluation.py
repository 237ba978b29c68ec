"""How good the served models are: on the global test set and at each party."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import tree
from ..inputs.examples import PartyExamples
from ..inputs.federated import Federated
from ..interface import Served
from ..metrics import Metric
from ..tasks.model_task import ModelTask
from ..tree import Tree
from .measures import describe_values, measure_served
from .scoring import Score, score_model

# `score_model` for the served model with that number.
_ScoreServed = Callable[[int, PartyExamples, int, int], tuple[int, float]]


def evaluate(
    task: ModelTask,
    served: Served,
    data: Federated,
    score: Score = score_model,
    metrics: Sequence[Metric] = (),
) -> dict[str, Any]:
    """Return the metrics of one round, by name (docs/training.md lists them).

    metrics: that were asked for besides accuracy and loss.

    With several models the global test accuracy is the mean over parties, with its population
    standard deviation. Without a global test set it is that of all parties' own test parts taken
    together.
    """
    which = served.which.tolist()

    def score_served(
        number: int, examples: PartyExamples, start: int, end: int
    ) -> tuple[int, float]:
        models = tree.index(served.models, number)
        buffers = tree.index(served.buffers, number)
        return score(task, models, buffers, examples, start, end)

    scores = {}
    if len(data.test.y):
        scores["test"] = _score_parties(score_served, which, data.test)
    if len(data.val.y):
        scores["val"] = _score_parties(score_served, which, data.val)
    if data.global_test is not None:
        values = _score_globally(score_served, which, data.global_test)
    else:
        values = _score_together(*scores["test"], data.test)
    if data.noisy_test is not None:
        n_parties = len(data.test.indptr) - 1
        noisy = _score_noisy(score_served, which, data.noisy_test, n_parties)
        values["test_accuracy_noisy"] = noisy
    for name, (right, _) in scores.items():
        part = data.test if name == "test" else data.val
        values |= describe_parties(f"party_{name}_accuracy", right, part)
    # what is there anyway has its own value
    return measure_served(task, served, data, metrics) | values


def _score_globally(score: _ScoreServed, which: list[int], test: PartyExamples) -> dict[str, Any]:
    """Score each served model once on the global test set."""
    n = len(test.y)
    scores = {}
    for number in sorted(set(which)):
        scores[number] = score(number, test, 0, n)
    shares, losses = [], []
    for number in which:  # of each party, so that a model counts as often as it is served
        right, loss = scores[number]
        shares.append(right / n)
        losses.append(loss / n)
    accuracy = torch.tensor(shares, dtype=torch.float64)
    metrics = {
        "test_accuracy": float(accuracy.mean()),
        "test_loss": sum(losses) / len(which),
    }
    if len(scores) > 1:
        metrics["test_accuracy_std"] = float(accuracy.std(correction=0))
    return metrics


def _score_parties(
    score: _ScoreServed, which: list[int], part: PartyExamples
) -> tuple[list[int], list[float]]:
    """Score each party's model on the party's own part: number right [P] and summed loss [P]."""
    rights, losses = [], []
    for party in range(len(part.indptr) - 1):
        number = _number_for(party, which)
        start = part.indptr[party]
        end = part.indptr[party + 1]
        right, loss = score(number, part, start, end)
        rights.append(right)
        losses.append(loss)
    return rights, losses


def _number_for(party: int, which: list[int]) -> int:
    """Return the number of the model that a party is served; one entry serves all."""
    return which[party] if len(which) > 1 else which[0]


def _score_noisy(
    score: _ScoreServed, which: list[int], test: PartyExamples, n_parties: int
) -> float:
    """Return the mean accuracy over parties on the global test set with each party's noise."""
    n = len(test.y)
    right = 0
    for party in range(n_parties):
        number = _number_for(party, which)
        its_right, _ = score(number, test.view_as(party), 0, n)
        right += its_right
    return right / (n_parties * n)


def _score_together(right: list[int], loss: list[float], part: PartyExamples) -> dict[str, Any]:
    n = len(part.y)
    return {"test_accuracy": sum(right) / n, "test_loss": sum(loss) / n}


def describe_parties(name: str, right: Sequence[int | None], part: PartyExamples) -> dict[str, Any]:
    """Return the accuracy of each party, and what describes them all.

    right: rows that each party's model has right. None where nobody knows, or there are no rows.
    """
    sizes = [part.size(party) for party in range(len(right))]
    each: list[float | None] = []
    for n_right, n in zip(right, sizes, strict=True):
        each.append(None if n_right is None or not n else n_right / n)
    return describe_values(name, each, sizes)


def grade_exam(
    task: ModelTask,
    models: Tree,
    buffers: Tree,
    party: Tensor,
    model: Tensor,
    data: Federated,
    score: Score = score_model,
) -> Tensor:
    """Return the accuracy of each asked (party, model) on that party's validation part.

    [Q] float64, NaN where that part is empty. models, buffers: of the state, leading axis M.
    """
    part = data.val
    accuracy = []
    for p, m in zip(party.tolist(), model.tolist(), strict=True):
        start = part.indptr[p]
        end = part.indptr[p + 1]
        its_model = tree.index(models, m)
        its_buffers = tree.index(buffers, m)
        right, _ = score(task, its_model, its_buffers, part, start, end)
        n = end - start
        accuracy.append(right / n if n else float("nan"))
    return torch.tensor(accuracy, dtype=torch.float64)
