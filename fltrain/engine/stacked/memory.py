"""How many jobs fit into memory at once.

By facts that are the same whenever a run is looked at: what a job needs, and what the device has.
What is free differs from one moment to the next, and a run that is resumed would be cut into
other chunks, which changes its last bits.
"""

from collections.abc import Sequence

import torch

from niidpart.errors import UsageError

from ... import tree
from ...counting import ceil_div, count_steps
from ...tree import Tree
from ..cost import count_cost
from ..device_memory import GIB, free_memory, total_memory
from ..jobs import Cell
from ..updates import count_slots
from .stack import Stack
from .task import make_plain_task

# Of all memory of the device: the rest is for the data, the states, what libraries take, and other
# processes.
SHARE = 0.5


def largest_party_size(cells: Sequence[Cell]) -> int:
    """Return the examples of the largest party of all cells."""
    sizes = []
    for cell in cells:
        train = cell.data.train
        sizes += [train.size(party) for party in range(cell.data.n_parties)]
    return max(sizes)


def estimate_job_bytes(
    cell: Cell,
    n: int,
    convolutions: str,
    *,
    stack: Stack,
    upload: Tree,
    own: Tree,
) -> float:
    """Return the bytes that one job of n examples takes at the peak of its training, estimated.

    stack: of one job alone; upload, own: what its `finish` gave. On a CPU 0.8 to 1.15 times the
    estimate was measured.
    """
    local, settings = stack.local, cell.settings
    # in training: the weights, what the optimiser holds, gradient, the step made of it, and one
    # more while it is made; the start where it differs between jobs
    slots = max(1, count_slots(settings))
    trained = (4 + slots) * _bytes_of(local.params) + _bytes_of(local.start)
    buffers = 2 * _bytes_of(local.buffers)
    # own before and after, what was sent to each job, and what is carried, twice
    kept = _bytes_of(local.own) + _bytes_of(own)
    moved = _bytes_of(local.each) + 2 * _bytes_of(local.carry)
    uploaded = 3 * _bytes_of(upload)  # in float64 while it is summed
    # the weights that training began from, and what it moved
    measured = 0 if settings.drift == "none" else 2 * _bytes_of(local.params)
    # what a forward pass keeps for the gradient and half as much on the way back; its largest
    # tensor twice, for the passes that an algorithm adds; the batch
    one = count_cost(make_plain_task(cell.task, convolutions), cell.data)
    batch = 3 * 4 * cell.data.train.x[:1].numel()
    example = 1.5 * one.saved + 2 * one.largest + batch
    examples = settings.batch_size * example
    steps_per_epoch = ceil_div(n, settings.batch_size)
    epochs = ceil_div(count_steps(n, settings), steps_per_epoch)
    orders = 8 * (n * epochs + 12 * n)  # of the examples, and what sorting them takes
    return trained + buffers + kept + moved + uploaded + measured + examples + orders


def memory_budget(memory: float | None, device: torch.device) -> float:
    """Return the bytes that jobs may take.

    Those asked for (GiB), else half of what the device has, whatever of it is free.
    """
    return memory * GIB if memory is not None else SHARE * total_memory(device)


def count_fitting_jobs(
    needed: float, memory: float | None, device: torch.device, batch_size: int
) -> float:
    """Return how many jobs of `needed` bytes fit into the budget; inf for any number.

    UsageError where it is none, or not even one fits into what is free by now.
    """
    allowed, free = memory_budget(memory, device), free_memory(device)
    if min(allowed, free) < needed:
        if memory is not None and allowed < needed:
            limit = f"--memory allows {allowed / GIB:.3g}; raise --memory"
        elif free < needed:
            limit = f"{free / GIB:.3g} are free; free some memory"
        else:
            half = f"{allowed / GIB:.3g}"
            limit = f"half of the device's memory is {half}; give more with --memory"
        raise UsageError(
            f"one job needs about {needed / GIB:.3g} GiB, and {limit}, "
            f"lower --batch-size (now {batch_size}), or use --engine looped, "
            "which keeps one job at a time and less beside it"
        )
    return allowed if allowed == float("inf") else allowed // needed


def _bytes_of(value: Tree) -> int:
    """Return the bytes of all leaves; `tree.nbytes` counts the floating-point ones alone."""
    return sum(leaf.nbytes for leaf in tree.leaves(value))
