"""The plan of a round: whom the cohort has, and what the algorithm lets them train."""

from collections.abc import Sequence

from .. import tree
from ..engine.cohort import draw_cohort
from ..engine.jobs import Cell
from ..engine.ranks import Ranks
from ..engine.scoring import Candidate, Score
from ..interface import Plan, State


def plan_round(cell: Cell, state: State, round: int, ranks: Ranks, score: Score) -> Plan:
    """Return what is trained in a round. All ranks have to call it, and find the same."""

    def measure(parties: Sequence[int]) -> list[float]:
        return _measure_losses(cell, state, parties, ranks, score)

    cohort = draw_cohort(cell.parties, cell.settings, round, measure)
    return cell.algorithm.plan(state, cohort, round, cell.algorithm.hyper)


def _measure_losses(
    cell: Cell, state: State, parties: Sequence[int], ranks: Ranks, score: Score
) -> list[float]:
    """Return the mean loss of what each party is served, on its training examples.

    They are seen as in evaluation. Each rank measures a part of the parties.
    """
    served = cell.algorithm.serve(state, cell.algorithm.hyper)
    which = served.which.tolist()
    examples = cell.data.train
    mine = ranks.share([examples.size(party) for party in parties])
    my_parties = [parties[place] for place in mine]

    def make_candidate(party: int) -> Candidate:
        number = which[party] if len(which) > 1 else which[0]
        return Candidate(
            params=tree.index(served.models, number),
            buffers=tree.index(served.buffers, number),
            examples=examples,
            start=examples.indptr[party],
            end=examples.indptr[party + 1],
        )

    scores = score(cell.task, map(make_candidate, my_parties))
    measured = []
    for place, party, (_, loss) in zip(mine, my_parties, scores, strict=True):
        measured.append((place, loss / examples.size(party)))
    losses: dict[int, float] = {}
    for of_rank in ranks.gather(measured):
        losses |= dict(of_rank)
    return [losses[place] for place in range(len(parties))]
