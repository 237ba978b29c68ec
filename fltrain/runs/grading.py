"""Exams: how well models do on the parties' validation parts, where an algorithm asks for it."""

import torch

from ..engine.evaluation import grade_exam
from ..engine.jobs import Cell
from ..engine.ranks import Ranks
from ..engine.round import Trained
from ..engine.scoring import Score
from ..interface import State


def grade(cell: Cell, trained: Trained, ranks: Ranks, score: Score) -> State:
    """Return the state after the exams that the algorithm asks for.

    Each rank examines a part of them.
    """
    algorithm, state = cell.algorithm, trained.state
    if algorithm.exam is None or algorithm.grade is None:
        return state
    party, model = algorithm.exam(state, trained.plan, algorithm.hyper)
    sizes = [cell.data.val.size(p) for p in party.tolist()]
    mine = ranks.share(sizes)
    models, buffers = state.models, state.buffers
    grades = grade_exam(
        task=cell.task,
        models=models,
        buffers=buffers,
        party=party[mine],
        model=model[mine],
        data=cell.data,
        score=score,
        graded_by=algorithm.graded_by,
    ).tolist()
    graded: dict[int, float] = {}
    # Every rank needs all grades, since each computes the whole next state.
    for of_rank in ranks.gather(list(zip(mine, grades, strict=True))):
        graded |= dict(of_rank)
    in_order = [graded[i] for i in range(len(party))]
    grades_of_all = torch.tensor(in_order, dtype=torch.float64)
    return algorithm.grade(state, trained.plan, grades_of_all, algorithm.hyper)
