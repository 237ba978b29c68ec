"""How many bytes a round moves."""

import torch
from torch import Tensor

from .. import tree
from ..interface import Algorithm, Plan, State, Task


def model_bytes(state: State) -> int:
    """One model as it travels: parameters and floating-point buffers, in their own type."""
    return tree.nbytes(tree.index(state.models, 0)) + tree.nbytes(tree.index(state.buffers, 0))


def bytes_of(algorithm: Algorithm, state: State, plan: Plan, task: Task) -> dict[str, int]:
    """bytes_down, bytes_up: over all jobs of the round; bytes_party_down, bytes_party_up: the most for one party.
    bytes_table4: the papers' rule, all uploads and one broadcast (ICDE 2022, Table IV)."""
    if algorithm.traffic is not None:
        down, up = algorithm.traffic(state, plan, task, algorithm.hyper)
    else:
        counts = (
            torch.ones(len(plan.party)) if plan.weight is None else plan.weight
        )  # a job of weight 0 stays at its party
        down = up = torch.where(counts > 0, model_bytes(state), 0)
    party_down, party_up = (_most_of_a_party(plan.party, b) for b in (down, up))
    broadcast = int(down.max()) if len(down) else 0
    return {
        "bytes_down": int(down.sum()),
        "bytes_up": int(up.sum()),
        "bytes_party_down": party_down,
        "bytes_party_up": party_up,
        "bytes_table4": int(up.sum()) + broadcast,
    }


def _most_of_a_party(party: Tensor, moved: Tensor) -> int:
    """A party may have several jobs."""
    return (
        int(torch.zeros(int(party.max()) + 1, dtype=torch.int64).index_add_(0, party, moved).max())
        if len(party)
        else 0
    )
