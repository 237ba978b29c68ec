"""The uploads of a stack, summed."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ... import tree
from ...tree import Tree
from ..jobs import Job
from ..sums import Sums, two_sum


def sum_uploads(
    upload: Tree, jobs: Sequence[Job], losses: Sequence[float], n_models: int, cell: int
) -> Sums:
    """The uploads of a cell's jobs, but of those whose loss is not finite, as sums: pairwise, so that it takes few operations for many jobs."""
    out = Sums(n_models)
    rows: dict[int, list[int]] = {}
    for j, (job, loss) in enumerate(zip(jobs, losses, strict=True)):
        if job.cell == cell and math.isfinite(loss):
            rows.setdefault(job.model, []).append(j)
    if not rows:
        return out
    out.empty = tree.empties(upload)
    for path, leaf in tree.flatten(upload).items():
        out.high[path] = torch.zeros(
            (n_models, *leaf.shape[1:]), dtype=torch.float64, device=leaf.device
        )
        out.low[path] = torch.zeros_like(out.high[path])
        for model, some in rows.items():
            values = (
                leaf if len(some) == len(leaf) else leaf[torch.tensor(some, device=leaf.device)]
            )
            out.high[path][model], out.low[path][model] = _total(values.double())
    return out


def _total(high: Tensor) -> tuple[Tensor, Tensor]:
    """(sum over the first axis, what rounding took from it): pairs of two halves, again and again."""
    low = torch.zeros_like(high)
    high = high.clone()
    while len(high) > 1:
        half = -(-len(high) // 2)
        n = len(high) - half
        two_sum(high[:n], low[:n], high[half:])
        low[:n] += low[half : half + n]
        high, low = high[:half], low[:half]
    return high[0], low[0]
