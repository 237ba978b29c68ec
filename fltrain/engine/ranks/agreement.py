"""Whether all ranks train the same run: whatever decides its result is compared before the first round."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from niidpart.errors import UsageError

from ... import tree
from ...common import Execution
from ...environment import describe
from ...inputs.federated import Federated
from ...interface import State
from ..jobs import Cell
from .group import Ranks

_HARMLESS = (
    "workers",
)  # settings that no result depends on. Memory is not one: it decides which jobs are stacked together, and so the last bits
_MACHINE = ("niidpart", "torch", "cuda", "device", "cpu")  # of `describe`: what changes bits
_NUMBERS = 1 << 24  # that are read at a time: what lies on a GPU has to come to the host
_PARTS = ("models", "buffers", "server", "parties")


def require_agreement(
    ranks: Ranks,
    split: str,
    cells: Sequence[Cell],
    states: Sequence[State],
    execution: Execution,
    done: Sequence[int] = (),
) -> None:
    """ValueError, the same at all ranks, where they are about to train different runs, or cannot train as they are told to.

    split: its digest. done: the rounds that each cell has behind it; () before the first.
    """
    if ranks.size == 1:
        return
    _possible(ranks, execution.device)
    told: dict[str, str] = {
        "the split": split,
        "rounds done": ", ".join(map(str, done)) or "0",
        "runs": str(len(cells)),
    }
    data: dict[int, str] = {}  # by the place of the features, which the cells of one split share
    for i, (cell, state) in enumerate(zip(cells, states, strict=True)):
        which = f" of run {i}" if len(cells) > 1 else ""
        told |= {
            name + which: said
            for name, said in (
                collect_facts(cell, state, execution) | {"the data": _digest_once(data, cell.data)}
            ).items()
        }
    heard = ranks.gather(told)
    if wrong := [
        said
        for name in told
        if (said := _difference(name, [its.get(name, "missing") for its in heard]))
    ]:
        raise UsageError(
            f"the ranks do not train the same run: {'; '.join(wrong)}. Start all with one command, one version of torch and the same data"
        )


def require_no_workers(ranks: Ranks, engine: str) -> None:
    """ValueError where a new run asks for worker processes within several ranks. A run that had them goes on with the ranks in their place."""
    if ranks.size > 1 and engine == "processes":
        raise UsageError(
            f"engine processes is for one rank, and there are {ranks.size}: they are the processes; use --engine looped"
        )


def collect_facts(cell: Cell, state: State, execution: Execution) -> dict[str, str]:
    """What decides the result of a run, by the name that a message gives it."""
    algorithm, settings = cell.algorithm, cell.settings
    machine = describe(cell.data.train.y.device, execution.threads)
    return {
        "algorithm": f"{algorithm.spec or algorithm.name} {algorithm.options}",
        "the algorithm's numbers": str(algorithm.hyper),
        **{
            name.replace("_", "-"): str(value)
            for name, value in (asdict(settings) | asdict(execution)).items()
            if name not in _HARMLESS
        },
        "the model": _short(str(cell.task.module).encode()),
        "the state that training starts from": _digest(state),
        **{f"{name} (of the machine)": str(machine[name]) for name in _MACHINE},
    }


def _possible(ranks: Ranks, device: str) -> None:
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if device == "cuda" and local >= (there := torch.cuda.device_count()):
        raise UsageError(
            f"rank {ranks.rank} is number {local} of its machine, which has {there} GPUs; at most that many ranks a machine, or --device cpu"
        )


def _difference(name: str, values: list[Any]) -> str:
    """`lr is 0.1 at rank 0, 0.2 at rank 2`: each value with the first rank that has it; nothing where all are equal."""
    firsts = {value: rank for rank, value in reversed(list(enumerate(values)))}
    if len(firsts) == 1:
        return ""
    return f"{name} is " + ", ".join(
        f"{value} at rank {rank}"
        for value, rank in sorted(firsts.items(), key=lambda pair: pair[1])
    )


def _digest(state: State) -> str:
    """Of all that a state holds, with the names."""
    return _of_bytes(tree.flatten({part: getattr(state, part) for part in _PARTS}))


def _digest_once(known: dict[int, str], data: Federated) -> str:
    """Of the features that are trained and graded on, and of what normalises them. known: by place in memory, since cells share them."""
    place = data.train.x.data_ptr()
    if place not in known:
        normalise = data.train.prepare.normalise
        constants = {} if normalise is None else {"mean": normalise.mean, "std": normalise.std}
        known[place] = _of_bytes({"train": data.train.x, "val": data.val.x} | constants)
    return known[place]


def _of_bytes(leaves: dict[str, Tensor]) -> str:
    """Over names, types, shapes and bytes."""
    sha = hashlib.sha256()
    for name, leaf in leaves.items():
        sha.update(f"{name} {leaf.dtype} {tuple(leaf.shape)}\n".encode())
        for some in leaf.detach().contiguous().flatten().split(_NUMBERS):
            sha.update(some.cpu().view(torch.uint8).numpy())
    return f"sha256 {sha.hexdigest()[:12]}"


def _short(data: bytes) -> str:
    return f"sha256 {hashlib.sha256(data).hexdigest()[:12]}"
