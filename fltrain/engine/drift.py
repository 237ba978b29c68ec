"""How far local training moves the weights of each party, and how alike the parties' ways are."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .. import tree
from ..tree import Tree
from .jobs import Job
from .threads import use_threads

_BLOCK = 1 << 24  # numbers that are looked at once, in float64: 128 MiB
_DIGITS = 6  # of what is written down
WHOLE = ""  # the model, among its layers


class MovedJob(NamedTuple):
    """What a job moved. share: its weight in the mean of its model."""

    party: int
    model: int
    share: float
    moved: Tree


class Drift(NamedTuple):
    """Of each party that trained: the norm of what it moved, and the cosine to the mean.

    cosine: None where one of both did not move at all.
    """

    norm: float
    cosine: float | None


class _Products(NamedTuple):
    """Inner products: of what a job moved with itself and the mean, of the mean with itself."""

    own: float
    shared: float
    mean: float

    def add(self, other: "_Products") -> "_Products":
        return _Products(self.own + other.own, self.shared + other.shared, self.mean + other.mean)


_NOTHING = _Products(0.0, 0.0, 0.0)


def copy_measured(begun: Tree, jobs: Sequence[Job]) -> Tree:
    """Return a copy of the weights that jobs begin from, {} where none of them is measured."""
    return tree.clone(begun) if any(job.is_measured for job in jobs) else {}


def subtract_weights(after: Tree, before: Tree) -> Tree:
    """Return what training moved."""
    return tree.map(torch.sub, after, before)


def measure_drift(jobs: Sequence[MovedJob], *, by_layer: bool) -> dict[str, dict[int, Drift]]:
    """Return the drift of each party, by layer; that of the whole model under `WHOLE`.

    The mean is that of the jobs of a model, by their shares, as FedAvg would have it. What a party
    moves of several models is one long vector, and so are their means. by_layer: whether layers are
    told apart, or the whole is all.
    """
    by_model: dict[int, list[MovedJob]] = {}
    for job in jobs:
        by_model.setdefault(job.model, []).append(job)
    found: dict[str, dict[int, _Products]] = {WHOLE: {}}
    with use_threads(1):  # sums of floats depend on how many share them
        for of_model in by_model.values():
            for path, products in _multiply_jobs(of_model).items():
                layers = (WHOLE, _name_layer(path)) if by_layer else (WHOLE,)
                for layer in layers:
                    _add_parties(found.setdefault(layer, {}), of_model, products)
    return {layer: _finish(of_layer) for layer, of_layer in found.items()}


def _name_layer(path: str) -> str:
    """Return the layer of a parameter; its own name where it stands in none."""
    return path.rpartition(".")[0] or path


def _add_parties(
    sums: dict[int, _Products], jobs: Sequence[MovedJob], products: Sequence[_Products]
) -> None:
    for job, one in zip(jobs, products, strict=True):
        sums[job.party] = sums.get(job.party, _NOTHING).add(one)


def _multiply_jobs(jobs: Sequence[MovedJob]) -> dict[str, list[_Products]]:
    """Return the products of jobs of one model, one a job, by the path of each parameter."""
    leaves = [tree.flatten(job.moved) for job in jobs]
    device = next(iter(leaves[0].values())).device
    shares = torch.tensor([job.share for job in jobs], dtype=torch.float64, device=device)
    paths = list(leaves[0])
    tables = [_multiply_leaves([of_job[path] for of_job in leaves], shares) for path in paths]
    on_host = torch.stack(tables).tolist()  # the host waits for the device here alone
    found = {}
    for path, rows in zip(paths, on_host, strict=True):
        found[path] = [_Products(own, shared, mean) for own, shared, mean in rows]
    return found


def _multiply_leaves(leaves: Sequence[Tensor], shares: Tensor) -> Tensor:
    """Return the products of one parameter, [J, 3] float64, in blocks of all jobs' numbers."""
    flat = [leaf.detach().reshape(-1) for leaf in leaves]
    width = max(1, _BLOCK // len(flat))
    out = torch.zeros(len(flat), 3, dtype=torch.float64, device=shares.device)
    for at in range(0, flat[0].numel(), width):
        rows = torch.stack([one[at : at + width] for one in flat]).double()
        mean = shares @ rows
        out[:, 0] += (rows * rows).sum(1)
        out[:, 1] += rows @ mean
        out[:, 2] += mean @ mean
    return out


def _finish(sums: Mapping[int, _Products]) -> dict[int, Drift]:
    return {party: _make_drift(sums[party]) for party in sorted(sums)}


def _make_drift(products: _Products) -> Drift:
    lengths = math.sqrt(products.own) * math.sqrt(products.mean)
    cosine = _round(products.shared / lengths) if lengths > 0 else None
    return Drift(_round(math.sqrt(products.own)), cosine)


def _round(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")
