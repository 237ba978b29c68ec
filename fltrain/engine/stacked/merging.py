"""The values of many jobs as one: an axis J where the jobs differ, and none where they do not.

What is equal in all jobs stays as it is, so that an operation with it costs what it costs for one
job, and a number stays a number. Each function returns the merged value and its `in_dims`.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ... import tree
from ...draws import to_int64
from ...interface import Batch, Hyper, Local, Work
from ...tree import Tree
from ..jobs import Job
from .trees import Dims, leading_axes, stack_trees

# Numbers of `Work` that a run's settings give: they are equal in all jobs, unless cells differ.
# The others (steps, n, share, first) are a job's own, and always get an axis.
_OF_SETTINGS = ("lr", "momentum")


def merge_works(jobs: Sequence[Job], device: torch.device) -> tuple[Work, Work]:
    """Merge the schedules of the jobs: each number [J] float64, except where it is one for all."""
    values: dict[str, Any] = {}
    dims: Dims = {}
    for name in Work._fields:
        column = [getattr(job.work, name) for job in jobs]
        if name in _OF_SETTINGS and len(set(column)) == 1:
            values[name] = column[0]
            dims[name] = None
        else:
            values[name] = torch.tensor(column, dtype=torch.float64, device=device)
            dims[name] = 0
    return Work(**values), Work(**dims)


def merge_locals(
    jobs: Sequence[Job], locals_: Sequence[Local], device: torch.device
) -> tuple[Local, Local]:
    """Merge what the jobs read before `begin`."""
    values: dict[str, Any] = {}
    dims: Dims = {}
    starts = [one.start for one in locals_]
    if len({(job.cell, job.model) for job in jobs}) == 1:
        # all start from one model: there is one copy of it, however many jobs
        values["start"] = starts[0]
        dims["start"] = _no_axes(starts[0])
    else:
        values["start"] = stack_trees(starts)
        dims["start"] = leading_axes(starts[0])
    for name in ("buffers", "each", "own"):
        values[name] = stack_trees([getattr(one, name) for one in locals_])
        dims[name] = leading_axes(values[name])
    keys = [to_int64(int(one.key)) for one in locals_]
    values["key"] = torch.tensor(keys, dtype=torch.int64, device=device)
    dims["key"] = 0
    shared = [one.shared for one in locals_]
    values["shared"], dims["shared"] = _merge_shared(shared)
    hypers = [one.hyper for one in locals_]
    weight = tree.leaves(starts[0])[0]
    values["hyper"], dims["hyper"] = _merge_numbers(hypers, like=weight)
    # before `begin` the parameters are the weights received, and nothing is carried
    values["params"], dims["params"] = values["start"], dims["start"]
    values["carry"], dims["carry"] = {}, {}
    return Local(**values), Local(**dims)


def _no_axes(value: Any) -> Any:
    """Return the `in_dims` of a value that is one for all jobs."""
    if isinstance(value, dict):
        return {name: _no_axes(part) for name, part in value.items()}
    return None


def _merge_shared(trees: list[Tree]) -> tuple[Tree, Dims]:
    """Merge what cells broadcast to their jobs."""
    merged: Tree = {}
    dims: Dims = {}
    for name, first in trees[0].items():
        column = [one[name] for one in trees]
        if isinstance(first, dict):
            merged[name], dims[name] = _merge_shared(column)
        elif _is_one_for_all(column):
            merged[name] = first
            dims[name] = None
        else:
            merged[name] = torch.stack(column)
            dims[name] = 0
    return merged, dims


def _is_one_for_all(leaves: list[Tensor]) -> bool:
    """Return whether the leaves are the same tensor, or the same number on the host.

    Values on a device are not compared: reading them would wait for it.
    """
    first = leaves[0]
    is_number = first.numel() == 1 and first.device.type == "cpu"
    return all(leaf is first or (is_number and torch.equal(leaf, first)) for leaf in leaves)


def _merge_numbers(hypers: list[Hyper], like: Tensor) -> tuple[Tree, Dims]:
    """Merge the algorithm's numbers, in the type of the weights: operations with them keep it."""
    merged: Tree = {}
    dims: Dims = {}
    for name, first in hypers[0].items():
        column = [hyper[name] for hyper in hypers]
        if all(value is first or value == first for value in column):
            merged[name] = first
            dims[name] = None
        else:
            merged[name] = torch.tensor(column, dtype=like.dtype, device=like.device)
            dims[name] = 0
    return merged, dims


def find_batch_dims(batch: Batch) -> Batch:
    """Return the `in_dims` of a batch: a mask may be None, and an epoch one number for all."""
    dims: dict[str, Any] = {
        "x": 0,
        "y": 0,
        "mask": None if batch.mask is None else 0,
        "epoch": 0 if isinstance(batch.epoch, Tensor) else None,
        "step": None,
    }
    return Batch(**dims)
