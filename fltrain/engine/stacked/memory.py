"""How many jobs fit into memory at once, by facts that are the same whenever a run is looked at: what a job needs, what the device has.

What is free differs from one moment to the next, and a run that is taken up again would be cut into other chunks, which changes its last bits.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from niidpart.errors import UsageError

from ... import tree
from ..batches import count_steps
from ..cost import cost
from ..jobs import Cell
from .stack import Stack
from .task import make_plain_task

GIB = 1 << 30
SHARE = 0.5  # of all memory of the device: beside the jobs are the data, the states, what libraries take, and other processes
_MEMINFO = Path("/proc/meminfo")


def largest_party_size(cells: Sequence[Cell]) -> int:
    """Examples of the largest party."""
    return max(
        cell.data.train.size(party) for cell in cells for party in range(cell.data.n_parties)
    )


def estimate_job_bytes(
    cell: Cell, n: int, convolutions: str, stack: Stack, upload: tree.Tree, own: tree.Tree
) -> float:
    """Bytes that one job of n examples takes at the peak of its training, estimated. stack: of one job alone; upload, own: what its `finish` gave.

    Weights: those in training, velocity, gradient, the step made of it, and one more while it is made; the start where it differs between jobs. Kept
    by party and algorithm: own before and after, what was said to each, what is carried, twice. The upload in float64, three times while it is
    summed. What a forward pass keeps for the gradient (`cost.cost`, with the convolutions as they are run) and half as much on the way back, its
    largest tensor twice for the passes that an algorithm adds; the batch; the order of the examples. On a CPU 0.8 to 1.15 times that was measured.
    """
    local, settings = stack.local, cell.settings
    trained = 5 * _bytes(local.params) + 2 * _bytes(local.buffers) + _bytes(local.start)
    said = _bytes(local.each) + _bytes(local.own) + 2 * _bytes(local.carry)
    one = cost(make_plain_task(cell.task, convolutions), cell.data)
    batch = 3 * 4 * cell.data.train.x[:1].numel()
    examples = settings.batch_size * (1.5 * one.saved + 2 * one.largest + batch)
    epochs = -(-count_steps(n, settings) // -(-n // settings.batch_size))
    orders = 8 * (n * epochs + 12 * n)
    return trained + said + _bytes(own) + 3 * _bytes(upload) + examples + orders


def memory_budget(memory: float | None, device: torch.device) -> float:
    """Bytes that jobs may take: those asked for (GiB), else half of what the device has, whatever of it is free."""
    return memory * GIB if memory is not None else SHARE * total_memory(device)


def total_memory(device: torch.device) -> float:
    """Bytes of the device's memory. inf where the system does not say."""
    return torch.cuda.mem_get_info(device)[1] if device.type == "cuda" else _told("MemTotal")


def free_memory(device: torch.device) -> float:
    """Bytes that can still be had on the device, those that torch holds and does not use among them. inf where the system does not say."""
    if device.type == "cuda":
        return (
            torch.cuda.mem_get_info(device)[0]
            + torch.cuda.memory_reserved(device)
            - torch.cuda.memory_allocated(device)
        )
    return _told("MemAvailable")


def _told(what: str) -> float:
    lines = _MEMINFO.read_text().splitlines() if _MEMINFO.exists() else []
    return next(
        (1024.0 * int(line.split()[1]) for line in lines if line.startswith(f"{what}:")),
        float("inf"),
    )


def count_fitting_jobs(
    needed: float, memory: float | None, device: torch.device, batch_size: int
) -> float:
    """How many jobs of `needed` bytes fit into the budget, rounded down; inf for any number. ValueError where it is none, or none fits by now."""
    there, now = memory_budget(memory, device), free_memory(device)
    if min(there, now) < needed:
        half = f"half of the device's memory is {there / GIB:.3g}; give more with --memory"
        whose = f"{now / GIB:.3g} are free; free some memory" if now < needed else half
        if memory is not None and there < needed:
            whose = f"--memory allows {there / GIB:.3g}; raise --memory"
        raise UsageError(
            f"one job needs about {needed / GIB:.3g} GiB, and {whose}, "
            f"lower --batch-size (now {batch_size}), or use --engine looped, which keeps one job at a time and less beside it"
        )
    return there if there == float("inf") else there // needed


def _bytes(value: tree.Tree) -> int:
    return sum(leaf.numel() * leaf.element_size() for leaf in tree.leaves(value))
