"""What a party is given that never trained: a model of the server, or the best of several."""

import torch

from niidpart.errors import UsageError

from ..engine.evaluation import grade_exam
from ..engine.jobs import Cell
from ..engine.scoring import Score
from ..inputs.federated import Federated
from ..interface import Served, State


def list_candidates(cell: Cell, state: State) -> Served:
    """Return the models of which a new party is given one. `which`: the numbers of those.

    UsageError where the algorithm has none for it.
    """
    algorithm = cell.algorithm
    if algorithm.serve_new is not None:
        return algorithm.serve_new(state, algorithm.hyper)
    served = algorithm.serve(state, algorithm.hyper)
    if len(served.which) > 1:
        raise UsageError(
            f"new-parties: {algorithm.name} gives each party a model of its own, so it has none "
            "for a party that never trains; take an algorithm with a global model, or, if this one "
            "is yours, say by `serve_new` what a new party is given"
        )
    return served


def choose_models(cell: Cell, new: Federated, state: State, score: Score) -> Served:
    """Return what each new party is served: of several candidates the one that it finds best.

    That is the one with the highest accuracy on its own validation part, the first of equals.
    UsageError where it has no such part.
    """
    candidates = list_candidates(cell, state)
    numbers = candidates.which
    if len(numbers) == 1:
        return candidates
    parties = torch.arange(new.n_parties)
    for party in parties.tolist():
        if not new.val.size(party):
            raise UsageError(
                f"{cell.algorithm.name} has {len(numbers)} models, of which a new party takes the "
                f"best on its own validation part, and party {new.find_number(party)} has none; "
                "make the split with --val 0.2"
            )
    accuracy = grade_exam(
        task=cell.task,
        models=candidates.models,
        buffers=candidates.buffers,
        party=parties.repeat_interleave(len(numbers)),
        model=numbers.repeat(len(parties)),
        data=new,
        score=score,
    )
    best = [row.index(max(row)) for row in accuracy.view(len(parties), -1).tolist()]
    return candidates._replace(which=numbers[best])
