"""How many bytes a round moves."""

import torch
from torch import Tensor

from .. import tree
from ..engine.round import Trained
from ..interface import Algorithm, Plan, State, Task


def count_model_bytes(state: State) -> int:
    """Return the bytes of one model as it travels.

    Parameters and floating-point buffers, in their own type.
    """
    weights = tree.index(state.models, 0)
    buffers = tree.index(state.buffers, 0)
    return tree.nbytes(weights) + tree.nbytes(buffers)


def count_bytes(algorithm: Algorithm, state: State, trained: Trained, task: Task) -> dict[str, int]:
    """Return the bytes of a round, as metrics.

    bytes_down, bytes_up: over all jobs; bytes_party_down, bytes_party_up: the most for one party.
    bytes_table4: the papers' rule, all uploads and one broadcast (ICDE 2022, Table IV).

    Parameters
    ----------
    state
        From before the round.
    """
    plan = trained.plan
    said = algorithm.declared_traffic
    if said is None:
        down = count_down(algorithm, state, plan, task)
        up = mask_idle(plan, _count_upload(state, trained.uploaded))
    else:
        down, up = said(state, plan, task, algorithm.hyper)
    # All parties hear the same in the papers, so one message of the longest counts for all.
    broadcast = int(down.max()) if len(down) else 0
    return {
        "bytes_down": int(down.sum()),
        "bytes_up": int(up.sum()),
        "bytes_party_down": _find_most_of_a_party(plan.party, down),
        "bytes_party_up": _find_most_of_a_party(plan.party, up),
        "bytes_table4": int(up.sum()) + broadcast,
    }


def count_down(algorithm: Algorithm, state: State, plan: Plan, task: Task) -> Tensor:
    """Return the bytes [J] down: what the algorithm says, else what the plan sends."""
    said = algorithm.declared_traffic
    if said is not None:
        down: Tensor = said(state, plan, task, algorithm.hyper)[0]
        return down
    sent = count_model_bytes(state) + tree.nbytes(plan.shared)
    if len(plan.party):
        sent += tree.nbytes(tree.index(plan.each, 0))
    return mask_idle(plan, sent)


def mask_idle(plan: Plan, n_bytes: int) -> Tensor:
    """Return that many bytes for each job [J], and none for one of weight 0: it stays at home."""
    moved = torch.full_like(plan.party, n_bytes)
    if plan.weight is None:
        return moved
    return moved.masked_fill(plan.weight <= 0, 0)


def _count_upload(state: State, uploaded: dict[str, int]) -> int:
    """Return the bytes of one upload.

    Weights and buffers travel in their own type, and no counts of batches; what has the name of a
    weight in that one's, as SCAFFOLD's controls; all else in the type of the first weight. (Sums
    are in float64 whatever travels.)
    """
    width = tree.leaves(state.models)[0].element_size()
    weights = tree.flatten(state.models)
    buffers = tree.flatten({"buffers": state.buffers})
    total = 0
    for path, n in uploaded.items():
        leaf = buffers.get(path, weights.get(path.partition("/")[2]))
        if leaf is None:
            total += n * width
        elif leaf.is_floating_point():
            total += n * leaf.element_size()
    return total


def _find_most_of_a_party(party: Tensor, moved: Tensor) -> int:
    """Return the most bytes of a party, which may have several jobs."""
    if not len(party):
        return 0
    sums = torch.zeros(int(party.max()) + 1, dtype=torch.int64)
    return int(sums.index_add_(0, party, moved).max())
