"""How many jobs fit into memory at once."""

from pathlib import Path

import torch

from ... import tree
from ..cost import cost
from ..jobs import Cell
from .stack import Stack
from .task import plain

GIB = 1 << 30
SHARE = 0.8  # of what is free: fragments, and what libraries take for themselves
_MEMINFO = Path("/proc/meminfo")


def per_job(cell: Cell, convolutions: str, stack: Stack, upload: tree.Tree, own: tree.Tree) -> float:
    """Bytes that one job takes at the peak of its training, estimated. stack: of that job alone; upload, own: what its `finish` gave.

    Weights: those in training, velocity, gradient, the step made of it, and one more while it is made; the start where it differs between jobs. Kept
    by party and algorithm: own before and after, what was said to each, what is carried, twice. The upload in float64, three times while it is
    summed. What a forward pass keeps for the gradient (`cost.cost`, with the convolutions as they are run) and half as much on the way back, its
    largest tensor twice for the passes that an algorithm adds; the batch; the order of the examples. On a CPU 0.8 to 1.15 times that was measured.
    """
    local, deal = stack.local, stack.deal
    trained = 5 * _bytes(local.params) + 2 * _bytes(local.buffers) + _bytes(local.start)
    said = _bytes(local.each) + _bytes(local.own) + 2 * _bytes(local.carry)
    one = cost(plain(cell.task, convolutions), cell.data)
    batch = 3 * 4 * cell.data.train.x[:1].numel()
    examples = deal.batch_size * (1.5 * one.saved + 2 * one.largest + batch)
    orders = 8 * (max(deal.n) * max(1, -(-max(deal.steps) // max(deal.per_epoch))) + 12 * max(deal.n))
    return trained + said + _bytes(own) + 3 * _bytes(upload) + examples + orders


def budget(memory: float | None, device: torch.device) -> float:
    """Bytes that jobs may take: those asked for (GiB), else most of what is free."""
    return memory * GIB if memory is not None else SHARE * free(device)


def free(device: torch.device) -> float:
    """Bytes that can still be had on the device, those that torch holds and does not use among them. inf where the system does not say."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    lines = _MEMINFO.read_text().splitlines() if _MEMINFO.exists() else []
    return next((1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), float("inf"))


def fitting(needed: float, memory: float | None, device: torch.device, batch_size: int) -> float:
    """How many jobs of `needed` bytes fit, rounded down; inf for any number. ValueError where it is none."""
    there = budget(memory, device)
    if there < needed:
        whose = f"--memory allows {there / GIB:.3g}" if memory is not None else f"{there / GIB:.3g} are free"
        raise ValueError(
            f"one job needs about {needed / GIB:.3g} GiB, and {whose}; {'raise --memory' if memory is not None else 'free some memory'}, "
            f"lower --batch-size (now {batch_size}), or use --engine looped, which keeps one job at a time and less beside it"
        )
    return there if there == float("inf") else there // needed


def _bytes(value: tree.Tree) -> int:
    return sum(leaf.numel() * leaf.element_size() for leaf in tree.leaves(value))
