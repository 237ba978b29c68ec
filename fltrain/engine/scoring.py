"""One model on some examples: how many it has right, its loss, its answers."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from ..inputs.examples import PartyExamples
from ..interface import Batch, Out
from ..tasks.model_task import ModelTask
from ..tree import Tree


class Candidate(NamedTuple):
    """A model, and the examples start..end that it is scored on.

    model: its number; candidates of one number, asked for together, are of one model. None for one
    whose number nobody knows.
    """

    params: Tree
    buffers: Tree
    examples: PartyExamples
    start: int
    end: int
    model: int | None = None


# `score_models` below, which an executor may do in its own way.
Score = Callable[[ModelTask, Iterable[Candidate]], list[tuple[int, float]]]


def evaluation_batch_size(device: torch.device) -> int:
    """Return how many examples go through the model at a time.

    On a CPU so few that a layer's numbers still fit a core's cache (1,000 take twice as long); a
    GPU wants many at once.
    """
    return 250 if device.type == "cpu" else 2000


def score_models(task: ModelTask, candidates: Iterable[Candidate]) -> list[tuple[int, float]]:
    """Return (number right, summed loss) of each candidate.

    They follow each other on the device, and the host waits for it once, behind the last of them.
    """
    scores = [sum_score(task, candidate) for candidate in candidates]
    if not scores:
        return []
    right = torch.stack([of_one for of_one, _ in scores]).tolist()
    loss = torch.stack([of_one for _, of_one in scores]).tolist()
    return list(zip(right, loss, strict=True))


@torch.no_grad()
def sum_score(task: ModelTask, candidate: Candidate) -> tuple[Tensor, Tensor]:
    """Return (number right, summed loss) of a candidate, still on the device."""
    device = candidate.examples.y.device
    right = torch.zeros((), dtype=torch.int64).to(device)
    loss = torch.zeros((), dtype=torch.float64).to(device)
    for out, y in _answer(task, *candidate[:5]):
        right += (out.logits.argmax(1) == y).sum()
        mean = task.test_loss(out, Batch(x=out.logits, y=y, mask=None, epoch=0, step=0))
        loss += mean.double() * len(y)
    return right, loss


@torch.no_grad()
def predict(
    task: ModelTask,
    params: Tree,
    buffers: Tree,
    examples: PartyExamples,
    start: int,
    end: int,
) -> Tensor:
    """Return the logits [n, K] of one model for examples start..end."""
    answers = _answer(task, params, buffers, examples, start, end)
    return torch.cat([out.logits for out, _ in answers])


def _answer(
    task: ModelTask,
    params: Tree,
    buffers: Tree,
    examples: PartyExamples,
    start: int,
    end: int,
) -> Iterator[tuple[Out, Tensor]]:
    """Yield outputs and classes, as many at a time as the device likes."""
    size = evaluation_batch_size(examples.y.device)
    for first in range(start, end, size):
        at = slice(first, min(first + size, end))
        yield task.forward(params, buffers, examples.inputs(at), train=False), examples.y[at]
