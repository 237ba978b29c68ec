"""How many bytes a round moves."""

import torch
from torch import Tensor

from .. import tree
from ..interface import Algorithm, Plan, State, Task


def count_model_bytes(state: State) -> int:
    """Return the bytes of one model as it travels.

    Parameters and floating-point buffers, in their own type.
    """
    return tree.nbytes(tree.index(state.models, 0)) + tree.nbytes(tree.index(state.buffers, 0))


def count_bytes(algorithm: Algorithm, state: State, plan: Plan, task: Task) -> dict[str, int]:
    """Return the bytes of a round, as metrics.

    bytes_down, bytes_up: over all jobs; bytes_party_down, bytes_party_up: the most for one party.
    bytes_table4: the papers' rule, all uploads and one broadcast (ICDE 2022, Table IV).
    """
    down, up = _count_by_job(algorithm, state, plan, task)
    # All parties hear the same in the papers, so one message of the longest counts for all.
    broadcast = int(down.max()) if len(down) else 0
    return {
        "bytes_down": int(down.sum()),
        "bytes_up": int(up.sum()),
        "bytes_party_down": _find_most_of_a_party(plan.party, down),
        "bytes_party_up": _find_most_of_a_party(plan.party, up),
        "bytes_table4": int(up.sum()) + broadcast,
    }


def _count_by_job(
    algorithm: Algorithm, state: State, plan: Plan, task: Task
) -> tuple[Tensor, Tensor]:
    """Return the bytes [J] down and up."""
    if algorithm.traffic is not None:
        return algorithm.traffic(state, plan, task, algorithm.hyper)
    weight = torch.ones(len(plan.party)) if plan.weight is None else plan.weight
    # A job of weight 0 stays at its party.
    moved = torch.where(weight > 0, count_model_bytes(state), 0)
    return moved, moved


def _find_most_of_a_party(party: Tensor, moved: Tensor) -> int:
    """Return the most bytes of a party, which may have several jobs."""
    if not len(party):
        return 0
    sums = torch.zeros(int(party.max()) + 1, dtype=torch.int64)
    return int(sums.index_add_(0, party, moved).max())
