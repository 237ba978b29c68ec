"""All ranks train the same run: what decides its result is compared before the first round."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from niidpart.errors import UsageError

from ... import tree
from ...environment import describe
from ...inputs.federated import Federated
from ...interface import State
from ..execution import Execution
from ..jobs import Cell
from .group import Ranks

# Settings that no result depends on. Memory is not one: it decides which jobs are stacked together,
# and so the last bits.
_HARMLESS = ("workers", "library")  # what decides no bit: of `library` the digest does
_MACHINE = ("niidpart", "torch", "cuda", "device", "cpu")  # of `describe`: what changes bits
_NUMBERS = 1 << 24  # that are read at a time: what lies on a GPU has to come to the host


def require_agreement(
    ranks: Ranks,
    split: str,
    cells: Sequence[Cell],
    states: Sequence[State],
    execution: Execution,
    done: Sequence[int] = (),
) -> None:
    """Raise a UsageError, the same at all ranks, where they are about to train different runs.

    Also where one cannot train as asked. split: its digest. done: the rounds that each cell
    has behind it; () before the first.
    """
    if ranks.size == 1:
        return
    _require_gpu(ranks, execution.device)
    facts = {
        "the split": split,
        "rounds done": ", ".join(map(str, done)) or "0",
        "runs": str(len(cells)),
    }
    data: dict[int, str] = {}  # digests by the place of the features, which cells share
    for i, (cell, state) in enumerate(zip(cells, states, strict=True)):
        which = f" of run {i}" if len(cells) > 1 else ""
        of_cell = collect_facts(cell, state, execution)
        of_cell["the data"] = _digest_data_once(data, cell.data)
        for name, value in of_cell.items():
            facts[name + which] = value
    gathered = ranks.gather(facts)
    differences = []
    for name in facts:
        values = [its.get(name, "missing") for its in gathered]
        if len(set(values)) > 1:
            differences.append(_describe_difference(name, values))
    if differences:
        raise UsageError(
            f"the ranks do not train the same run: {'; '.join(differences)}. "
            "Start all with one command, one version of torch and the same data"
        )


def collect_facts(cell: Cell, state: State, execution: Execution) -> dict[str, str]:
    """Return what decides the result of a run, by the name that a message gives it."""
    algorithm = cell.algorithm
    facts = {
        "algorithm": f"{algorithm.spec or algorithm.name} {algorithm.options}",
        "the algorithm's numbers": str(algorithm.hyper),
    }
    chosen = asdict(cell.settings) | asdict(execution)
    for name, value in chosen.items():
        if name not in _HARMLESS:
            facts[name.replace("_", "-")] = str(value)
    layers = str(cell.task.module).encode()
    facts["the model"] = _shorten(hashlib.sha256(layers).hexdigest())
    facts["the state that training starts from"] = _digest_state(state)
    machine = describe(cell.data.train.y.device, execution.threads)
    for name in _MACHINE:
        facts[f"{name} (of the machine)"] = str(machine[name])
    return facts


def _require_gpu(ranks: Ranks, device: str) -> None:
    """Raise a UsageError where a machine has more ranks than GPUs."""
    if device != "cuda":
        return
    local = int(os.environ.get("LOCAL_RANK", "0"))
    n_gpus = torch.cuda.device_count()
    if local >= n_gpus:
        raise UsageError(
            f"rank {ranks.rank} is number {local} of its machine, which has {n_gpus} GPUs; "
            "at most that many ranks a machine, or --device cpu"
        )


def _describe_difference(name: str, values: list[Any]) -> str:
    """Return `lr is 0.1 at rank 0, 0.2 at rank 2`: each value with the first rank that has it."""
    first: dict[Any, int] = {}
    for rank, value in enumerate(values):
        first.setdefault(value, rank)
    return f"{name} is " + ", ".join(f"{value} at rank {rank}" for value, rank in first.items())


def _digest_state(state: State) -> str:
    """Return a digest of all that a state holds, with the names."""
    return _digest_leaves(tree.flatten(state.parts))


def _digest_data_once(known: dict[int, str], data: Federated) -> str:
    """Return a digest of the features that are trained and graded on, and what normalises them.

    known: digests by place in memory, since cells share them.
    """
    place = data.train.y.data_ptr()
    if place not in known:
        leaves = {"train": data.train.x, "val": data.val.x}
        normalise = data.train.prepare.normalise
        if normalise is not None:
            leaves |= {"mean": normalise.mean, "std": normalise.std}
        known[place] = _digest_leaves(leaves)
    return known[place]


def _digest_leaves(leaves: dict[str, Tensor]) -> str:
    """Return a digest of names, types, shapes and bytes."""
    sha = hashlib.sha256()
    for name, leaf in leaves.items():
        described = f"{name} {leaf.dtype} {tuple(leaf.shape)}\n"
        sha.update(described.encode())
        flat = leaf.detach().contiguous().flatten()
        for some in torch.split(flat, _NUMBERS):
            on_host = some.cpu().view(torch.uint8)
            sha.update(on_host.numpy().data)
    return _shorten(sha.hexdigest())


def _shorten(digest: str) -> str:
    return f"sha256 {digest[:12]}"
