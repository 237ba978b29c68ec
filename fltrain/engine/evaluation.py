"""How good the served models are: on the global test set and at each party."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from niidpart.errors import UsageError

from .. import tree
from ..inputs.federated import Federated, PartyExamples
from ..interface import Batch, Served, Task
from ..tasks.model_task import cross_entropy
from ..tree import Tree

Score = Callable[
    [Task, Tree, Tree, PartyExamples, int, int], tuple[int, float]
]  # as `score` below, which an executor may do in its own way
_Graded = Callable[
    [int, PartyExamples, int, int], tuple[int, float]
]  # the served model with that number on examples start..end


def evaluation_batch_size(device: torch.device) -> int:
    """Examples at a time: on a CPU so few that a layer's numbers still fit a core's cache (1,000 take twice as long), a GPU wants many at once."""
    return 250 if device.type == "cpu" else 2000


@torch.no_grad()
def score_model(
    task: Task, params: Tree, buffers: Tree, examples: PartyExamples, start: int, end: int
) -> tuple[int, float]:
    """(number right, summed loss) of one model on examples start..end."""
    right, loss = torch.zeros((), dtype=torch.int64), torch.zeros((), dtype=torch.float64)
    right, loss = right.to(examples.y.device), loss.to(examples.y.device)
    size = evaluation_batch_size(examples.y.device)
    for a in range(start, end, size):
        at = slice(a, min(a + size, end))
        y = examples.y[at]
        out = task.forward(params, buffers, examples.inputs(at), train=False)
        right += (out.logits.argmax(1) == y).sum()
        loss += cross_entropy(out, Batch(out.logits, y, None, 0, 0)).double() * len(y)
    return int(right), float(loss)


def evaluate(
    task: Task, served: Served, data: Federated, score: Score = score_model
) -> dict[str, Any]:
    """The metrics of one round, by name (docs/training.md lists them).

    With several models the global test accuracy is the mean over parties, with its population standard deviation. Without a global test
    set it is that of all parties' own test parts taken together.
    """
    which = served.which.tolist()

    def graded(v: int, examples: PartyExamples, start: int, end: int) -> tuple[int, float]:
        return score_model(
            task, tree.index(served.models, v), tree.index(served.buffers, v), examples, start, end
        )

    own = {
        name: _at_parties(graded, which, part)
        for name, part in (("test", data.test), ("val", data.val))
        if len(part.y)
    }
    metrics = (
        _global(graded, which, data.global_test)
        if data.global_test is not None
        else _together(*own["test"], data.test)
    )
    if data.noisy_test is not None:
        metrics["test_accuracy_noisy"] = _noisy(
            graded, which, data.noisy_test, len(data.test.indptr) - 1
        )
    for name, (right, _) in own.items():
        metrics |= _per_party(f"party_{name}_accuracy", right, getattr(data, name))
    return metrics


def _global(graded: _Graded, which: list[int], test: PartyExamples) -> dict[str, Any]:
    n = len(test.y)
    scores = {v: graded(v, test, 0, n) for v in sorted(set(which))}
    accuracy = torch.tensor([scores[v][0] / n for v in which], dtype=torch.float64)
    metrics = {
        "test_accuracy": float(accuracy.mean()),
        "test_loss": sum(scores[v][1] / n for v in which) / len(which),
    }
    if len(scores) > 1:
        metrics["test_accuracy_std"] = float(accuracy.std(correction=0))
    return metrics


def _at_parties(
    graded: _Graded, which: list[int], part: PartyExamples
) -> tuple[list[int], list[float]]:
    """Each party's model on the party's own part: number right [P] and summed loss [P]."""
    rows = [
        graded(which[p if len(which) > 1 else 0], part, part.indptr[p], part.indptr[p + 1])
        for p in range(len(part.indptr) - 1)
    ]
    return [right for right, _ in rows], [loss for _, loss in rows]


def _noisy(graded: _Graded, which: list[int], test: PartyExamples, n_parties: int) -> float:
    """Mean over parties of the accuracy of the model served to each, on the global test set with that party's noise."""
    right = 0
    for p in range(n_parties):
        right += graded(which[p if len(which) > 1 else 0], test.seen_by(p), 0, len(test.y))[0]
    return right / (n_parties * len(test.y))


def _together(right: list[int], loss: list[float], part: PartyExamples) -> dict[str, Any]:
    return {"test_accuracy": sum(right) / len(part.y), "test_loss": sum(loss) / len(part.y)}


def _per_party(name: str, right: list[int], part: PartyExamples) -> dict[str, Any]:
    """Accuracy of each party (None where it has no examples), their mean, standard deviation, 10th percentile and worst."""
    each = [r / part.size(p) if part.size(p) else None for p, r in enumerate(right)]
    known = torch.tensor([a for a in each if a is not None], dtype=torch.float64)
    return {
        name: each,
        f"{name}_mean": float(known.mean()),
        f"{name}_std": float(known.std(correction=0)),
        f"{name}_p10": float(known.quantile(0.1)),
        f"{name}_worst": float(known.min()),
    }


def require_validation_parts(name: str, data: Federated) -> None:
    """ValueError where a party that trains has no validation part to grade models on."""
    without = [p for p in range(data.n_parties) if data.train.size(p) and not data.val.size(p)]
    if without:
        held = (
            f"{len(without)} of {data.n_parties} parties have none, the first is party {without[0]}"
            if len(data.val.y)
            else "the split has none"
        )
        raise UsageError(
            f"{name} grades models on each party's validation part, and {held}; make the split with --val 0.2"
        )


def grade_exam(
    task: Task,
    state_models: Tree,
    state_buffers: Tree,
    party: Tensor,
    model: Tensor,
    data: Federated,
    score: Score = score_model,
) -> Tensor:
    """[Q] float64 accuracy of each asked (party, model) on that party's validation part, NaN where that is empty."""
    part, out = data.val, []
    for p, m in zip(party.tolist(), model.tolist(), strict=True):
        right, _ = score_model(
            task,
            tree.index(state_models, m),
            tree.index(state_buffers, m),
            part,
            part.indptr[p],
            part.indptr[p + 1],
        )
        out.append(right / part.size(p) if part.size(p) else float("nan"))
    return torch.tensor(out, dtype=torch.float64)
