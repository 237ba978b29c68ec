"""Evaluation of many models at once: the scores of one after another."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from fltrain import tree
from fltrain.algorithms import build
from fltrain.engine.scoring import Candidate, score_models, sum_score
from fltrain.engine.stacked.executor import Stacked
from fltrain.engine.stacked.scoring import can_score_together, score_together, sum_scores
from fltrain.engine.stacked.task import make_stacked_task

from ._rehearsal import Operations, bring
from ._stacked import cell_of, network


def move(weights, number):
    """Weights of that number: others for each."""
    g = torch.Generator().manual_seed(number)
    return tree.map(lambda w: w + torch.randn(w.shape, generator=g, dtype=w.dtype), weights)


@pytest.fixture
def cell(table_split, table):
    return cell_of(table_split, table, build("solo"), network(normed=True))


def ask(cell, which, part="train"):
    """Candidates: each party's own part, with the model of that number."""
    examples = getattr(cell.data, part)
    trained, fixed = cell.task.split_weights()
    floats = {name: leaf for name, leaf in fixed.items() if leaf.is_floating_point()}
    asked = []
    for party, number in enumerate(which):
        buffers = fixed | tree.map(torch.abs, move(floats, -number))
        bounds = examples.indptr[party : party + 2]
        asked.append(Candidate(move(trained, number), buffers, examples, *bounds, number))
    return asked


@pytest.mark.parametrize("known", [True, False], ids=["by number", "of unknown number"])
@pytest.mark.parametrize("which", [[0, 1, 2, 3, 4], [7, 7, 7, 7, 7], [0, 1, 0, 1, 2]])
def test_scores_are_those_of_one_after_another(cell, which, known):
    """Own models, one for all, some shared; parties of unequal size, one part empty, one asked for twice."""
    asked = ask(cell, which)
    asked += [asked[0]._replace(end=asked[0].start), asked[1]]
    if not known:
        asked = [one._replace(model=None) for one in asked]
    ours = Stacked([cell]).score(cell.task, iter(asked))
    theirs = score_models(cell.task, asked)
    assert [right for right, _ in ours] == [right for right, _ in theirs]
    assert [loss for _, loss in ours] == pytest.approx([loss for _, loss in theirs], abs=1e-12)


def test_more_examples_than_go_at_once(cell, monkeypatch):
    monkeypatch.setattr("fltrain.engine.stacked.scoring.evaluation_batch_size", lambda device: 6)
    monkeypatch.setattr("fltrain.engine.stacked.scoring._WEIGHTS", 1)
    asked = ask(cell, [0, 1, 2, 2, 2])
    assert [
        right for right, _ in score_together(make_stacked_task(cell.task, "grouped"), asked)
    ] == [right for right, _ in score_models(cell.task, asked)]
    assert Stacked([cell]).score(cell.task, []) == []


def test_a_loss_of_ones_own_sees_no_padding(cell):
    """And it is the one that models are evaluated by."""

    def loss(out, batch):
        assert batch.mask is None
        return (out.logits.logsumexp(1) - out.logits[:, 0]).mean()

    task = replace(cell.task, test_loss=loss)
    asked = ask(cell, [0, 1, 2, 3, 4])
    ours = Stacked([cell]).score(task, asked)
    assert [loss for _, loss in ours] == pytest.approx(
        [loss for _, loss in score_models(task, asked)], abs=1e-12
    )


class Branching(nn.Module):
    """Takes another way for each model, which no call for many at once can."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x):
        out = self.layer(x)
        return out if self.training or float(out.sum()) > 0 else -out


def test_a_model_that_answers_one_at_a_time_is_scored_so(table_split, table):
    cell = cell_of(table_split, table, build("solo"), Branching())
    asked = ask(cell, [0, 1, 2, 3, 4])
    assert not can_score_together(make_stacked_task(cell.task, "grouped"), asked[0])
    assert Stacked([cell]).score(cell.task, asked) == score_models(cell.task, asked)


@pytest.mark.parametrize(("which", "most"), [(list(range(40)), 100), ([0] * 40, 80)])
def test_many_parties_take_few_kernels(table, dealt, which, most):
    """On a device without numbers: 40 parties of 2 or 3 rows, by two calls for two sizes of pieces. One by one takes 16 for each."""
    split = dealt(table, [i % 40 for i in range(90)])
    cell = cell_of(split, table, build("solo"), network(double=False))
    asked = ask(cell, which)
    examples = bring(cell.data.train)
    there = [
        one._replace(params=bring(one.params), buffers=bring(one.buffers), examples=examples)
        for one in asked
    ]
    with Operations() as together:
        list(sum_scores(make_stacked_task(cell.task, "grouped"), there))
    with Operations() as apart:
        for candidate in there:
            sum_score(cell.task, candidate)
    assert apart.kernels.total() == 40 * 16
    assert together.kernels.total() <= most
