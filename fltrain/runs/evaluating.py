"""The metrics of a round that is evaluated: of what is served, of own models, of new parties."""

from collections.abc import Mapping
from typing import Any

from ..engine.evaluation import evaluate
from ..engine.jobs import Cell
from ..engine.scoring import Score
from ..interface import State
from .internals import describe_internals
from .new_models import choose_models

NEW = "new_"  # begins the names of what new parties have


def evaluate_cell(cell: Cell, state: State, score: Score) -> dict[str, Any]:
    """Return the metrics of the models that are served, of the parties' own, and at new parties.

    And what the algorithm says of its state, where that is asked for.
    """
    algorithm = cell.algorithm
    served = algorithm.serve(state, algorithm.hyper)
    metrics = evaluate(cell.task, served, cell.data, score, cell.metrics)
    if algorithm.personal is not None:
        personal = algorithm.personal(state, algorithm.hyper)
        own = evaluate(cell.task, personal, cell.data, score, cell.metrics)
        metrics |= {f"personal_{name}": value for name, value in own.items()}
    metrics |= _evaluate_new_parties(cell, state, score)
    return metrics | describe_internals(cell, state)


def _evaluate_new_parties(cell: Cell, state: State, score: Score) -> dict[str, Any]:
    """Return how good what new parties are given is on their own parts; {} without such parties."""
    new = cell.data.new_parties
    if new is None:
        return {}
    served = choose_models(cell, new, state, score)
    return select_new(evaluate(cell.task, served, new, score, cell.metrics))


def select_new(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return of what new parties have that which is measured at home, by the names of a round."""
    at_home = {name: value for name, value in found.items() if name.startswith("party_")}
    return {f"{NEW}{name}": value for name, value in at_home.items()}
