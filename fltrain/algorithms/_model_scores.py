"""The scores that parties give to models, and which models a party deletes by them (FedCD).

Axes: P parties, M models. scores: [P, M] float64, 0 where a model is not active at the party;
active: [P, M] bool.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from ..interface import Hyper, State
from ..tree import Tree

# scores this close are equal: a third of 1 is not rounded to the mean of three of them
_ROUNDING = 1e-12
# the least divisor, where a sum is 0 and the quotient is not used
_TINY = 1e-300

Rule = Callable[[Tensor, Tensor], Tensor]  # (scores, active) -> deleted [P, M]


def far_below_mean(scores: Tensor, active: Tensor) -> Tensor:
    """Return the models [P, M] that score more than sigma below the mean of their party.

    scores: [P, M], 0 where not active. Never the best one, the oldest of equals.
    """
    mean = scores.sum(1, keepdim=True) / active.sum(1, keepdim=True)
    return _far_below(mean, scores, active)


def far_below_best(scores: Tensor, active: Tensor) -> Tensor:
    """Return the models [P, M] that score more than sigma below the best of their party."""
    return _far_below(scores.amax(1, keepdim=True), scores, active)


def _far_below(top: Tensor, scores: Tensor, active: Tensor) -> Tensor:
    """Return the models [P, M] that score more than sigma below `top` [P, 1]."""
    is_far = top - scores > measure_spread(scores, active) + _ROUNDING
    return active & is_far & ~find_best(scores, active)


def measure_spread(scores: Tensor, active: Tensor) -> Tensor:
    """Return sigma [P, 1]: the sample deviation of a party's scores, 0 where it has one model."""
    n = active.sum(1, keepdim=True)
    mean = scores.sum(1, keepdim=True) / n
    squares = (active * (scores - mean) ** 2).sum(1, keepdim=True)
    variance = squares / (n - 1).clamp(min=1)
    return variance.sqrt()


def second_of_two(scores: Tensor, active: Tensor, highest: float) -> Tensor:
    """Return [P, M] bool: the lower of two active models, where it scores at most `highest`."""
    are_two = active.sum(1, keepdim=True) == 2
    is_low = scores <= highest + _ROUNDING
    return active & are_two & is_low & ~find_best(scores, active)


def find_best(scores: Tensor, active: Tensor) -> Tensor:
    """Return [P, M] bool: one active model of each party, the best, the oldest of equals."""
    ranked = scores.masked_fill(~active, -1.0)
    is_highest = ranked == ranked.amax(1, keepdim=True)
    return is_highest & (is_highest.cumsum(1) == 1)


def describe_scores(state: State, hyper: Hyper) -> Tree:
    """Say which models parties prefer and keep, and how far their scores are apart."""
    scores, active = state.server["scores"], state.server["active"]
    best = find_best(scores, active)
    spread = measure_spread(scores, active).flatten()
    return {
        "preferred_model": torch.nonzero(best)[:, 1],
        "active_models": active.sum(1),
        "score_std": spread,
        "active_models_total": active.sum(),
        "score_std_mean": spread.mean(),
        "models_in_use": active.any(0).sum(),
        "models_preferred": best.any(0).sum(),
    }


def strengths(server: Tree) -> Tensor:
    """Return s [P, M]: the mean of the accuracies in the history, the guess where there is none."""
    history: Tensor = server["history"]  # [P, M, window], -1 for none
    seen = history >= 0
    n_seen = seen.sum(2)
    mean = (history * seen).sum(2) / n_seen.clamp(min=1)
    return torch.where(n_seen > 0, mean, server["guess"])


def score(server: Tree) -> Tree:
    """Return the server's state with its scores [P, M].

    A score is s over the sum of s over the party's active models; all are alike where every s is 0.
    """
    active = server["active"].double()
    s = strengths(server) * active
    total = s.sum(1, keepdim=True)
    alike = active / active.sum(1, keepdim=True)
    relative = s / total.clamp(min=_TINY)  # torch.where evaluates both: no division by 0
    return server | {"scores": torch.where(total > 0, relative, alike)}
