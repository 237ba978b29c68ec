"""How good the served models are: on the global test set and at each party."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal

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
from .scoring import Candidate, Score, score_models

# Served models by number, and the examples start..end that each is scored on.
_Asked = Iterator[tuple[int, PartyExamples, int, int]]
# `score_models` for served models.
_ScoreServed = Callable[[_Asked], list[tuple[int, float]]]


def evaluate(
    task: ModelTask,
    served: Served,
    data: Federated,
    score: Score = score_models,
    metrics: Sequence[Metric] = (),
) -> dict[str, Any]:
    """Return the metrics of one round, by name (docs/training.md lists them).

    metrics: that were asked for besides accuracy and loss.

    With several models the global test accuracy is the mean over parties, with its population
    standard deviation. Without a global test set it is that of all parties' own test parts taken
    together; where no test set is read there is none.
    """
    which = served.which.tolist()

    def score_served(asked: _Asked) -> list[tuple[int, float]]:
        candidates = (
            Candidate(
                params=tree.index(served.models, number),
                buffers=tree.index(served.buffers, number),
                examples=examples,
                start=start,
                end=end,
                model=number,
            )
            for number, examples, start, end in asked
        )
        return score(task, candidates)

    scores = {}
    values: dict[str, Any] = {}
    if len(data.test.y):
        scores["test"] = _score_parties(score_served, which, data.test)
    if len(data.val.y):
        scores["val"] = _score_parties(score_served, which, data.val)
    if data.global_test is not None:
        values = _score_globally(score_served, which, data.global_test)
    elif "test" in scores:
        values = _score_together(*scores["test"], data.test)
    if data.noisy_test is not None:
        n_parties = len(data.test.indptr) - 1
        numbers = data.numbers or range(n_parties)
        values["test_accuracy_noisy"] = _score_noisy(score_served, which, data.noisy_test, numbers)
    for name, (right, _) in scores.items():
        part = data.test if name == "test" else data.val
        values |= describe_parties(f"party_{name}_accuracy", right, data, part)
    # what is there anyway has its own value
    return measure_served(task, served, data, metrics) | values


def _score_globally(score: _ScoreServed, which: list[int], test: PartyExamples) -> dict[str, Any]:
    """Score each served model once on the global test set."""
    n = len(test.y)
    numbers = sorted(set(which))
    scores = dict(zip(numbers, score((number, test, 0, n) for number in numbers), strict=True))
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
    bounds = pairwise(part.indptr)
    asked = (
        (_number_for(party, which), part, start, end) for party, (start, end) in enumerate(bounds)
    )
    scores = score(asked)
    return [right for right, _ in scores], [loss for _, loss in scores]


def _number_for(party: int, which: list[int]) -> int:
    """Return the number of the model that a party is served; one entry serves all."""
    return which[party] if len(which) > 1 else which[0]


def _score_noisy(
    score: _ScoreServed, which: list[int], test: PartyExamples, parties: Sequence[int]
) -> float:
    """Return the mean accuracy over parties on the global test set with each party's noise.

    parties: their numbers in the split, by which noise is known.
    """
    n = len(test.y)
    asked = (
        (_number_for(place, which), test.view_as(party), 0, n)
        for place, party in enumerate(parties)
    )
    right = sum(its_right for its_right, _ in score(asked))
    return right / (len(parties) * n)


def _score_together(right: list[int], loss: list[float], part: PartyExamples) -> dict[str, Any]:
    n = len(part.y)
    return {"test_accuracy": sum(right) / n, "test_loss": sum(loss) / n}


def describe_parties(
    name: str, right: Sequence[int | None], data: Federated, part: PartyExamples
) -> dict[str, Any]:
    """Return the accuracy of each party of the split, and what describes those there.

    right: rows of the part that each party's model has right. None where nobody knows, or there
    are no rows.
    """
    sizes = [part.size(party) for party in range(len(right))]
    each: list[float | None] = []
    for n_right, n in zip(right, sizes, strict=True):
        each.append(None if n_right is None or not n else n_right / n)
    return describe_values(name, each, sizes) | {name: data.spread(each)}


def grade_exam(
    task: ModelTask,
    models: Tree,
    buffers: Tree,
    party: Tensor,
    model: Tensor,
    data: Federated,
    score: Score = score_models,
    graded_by: Literal["accuracy", "loss"] = "accuracy",
) -> Tensor:
    """Return the grade of each asked (party, model) on that party's validation part.

    [Q] float64, NaN where that part is empty. models, buffers: of the state, leading axis M.
    graded_by: the mean over its examples that is the grade.
    """
    part, parties = data.val, party.tolist()
    candidates = (
        Candidate(
            params=tree.index(models, m),
            buffers=tree.index(buffers, m),
            examples=part,
            start=part.indptr[p],
            end=part.indptr[p + 1],
            model=m,
        )
        for p, m in zip(parties, model.tolist(), strict=True)
    )
    grades = []
    for p, (right, loss) in zip(parties, score(task, candidates), strict=True):
        n = part.size(p)
        total = right if graded_by == "accuracy" else loss
        grades.append(total / n if n else float("nan"))
    return torch.tensor(grades, dtype=torch.float64)
