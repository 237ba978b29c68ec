"""What a step costs: floating point operations and memory, counted on two examples.

Nothing is timed: the same run has the same cost anywhere.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from .. import tree
from ..inputs.federated import Federated
from ..interface import Batch, State
from ..tasks.model_task import ModelTask
from ..tree import Tree
from .evaluation import evaluation_batch_size
from .execution import Execution
from .jobs import Cell

# Bytes: Python with torch, numpy and h5py; what a worker has for itself (both measured).
BASE, WORKER = 2.2e8, 4e7
_EXAMPLES = 2  # batch norm needs two


class Cost(NamedTuple):
    """What one example costs a model.

    flop: operations of a forward and backward pass (matrix products and convolutions; a
    multiplication and an addition are two). saved: bytes that the forward pass keeps for the
    backward pass; largest: those of the largest tensor among them. parameters: their number;
    weights: bytes of those that are trained.
    """

    flop: float
    saved: float
    largest: float
    parameters: int
    weights: int


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up what `torch.utils.flop_counter` says of each operation.

    The mode of that module loads torch's compiler, which takes as long as a short run.
    """

    flop = 0

    # torch offers dispatch modes by the private `_python_dispatch` alone: its notes on extending
    # torch name that path. A subclass loads the compiler too, to be left out of compiled code,
    # unless it answers False here; nothing is compiled while a step is counted. A torch without
    # this question ignores the answer.
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **kwargs or {})
        if func.overloadpacket in flop_registry:
            self.flop += flop_registry[func.overloadpacket](*args, **kwargs or {}, out_val=out)
        return out


def count_cost(task: ModelTask, data: Federated) -> Cost:
    """Return the cost of one example, by the task's own loss.

    What an algorithm adds (MOON: two more forward passes) is not in it. This takes one training
    step of two examples: tensors without values (torch's device "meta") load the compiler too. No
    generator moves on.
    """
    task = replace(task, bf16=False, compiled=False)
    x = data.train.inputs(slice(0, _EXAMPLES))
    y = data.train.y[:1].expand(_EXAMPLES)
    named = {name: p.detach() for name, p in task.module.named_parameters()}
    named |= dict(task.module.named_buffers())
    with torch.random.fork_rng([x.device] if x.device.type == "cuda" else []):
        return _count_step(task, named, x.expand(_EXAMPLES, *x.shape[1:]), y)


def _count_step(task: ModelTask, named: Tree, x: Tensor, y: Tensor) -> Cost:
    trained = {name: named[name] for name, p in task.module.named_parameters() if p.requires_grad}
    fixed = {name: t for name, t in named.items() if name not in trained}
    weights = {t.untyped_storage()._cdata for t in named.values()}
    saved: dict[int, int] = {}  # bytes by storage: views of one are counted once

    def pack(t: Tensor) -> Tensor:
        storage = t.untyped_storage()._cdata
        if storage not in weights:
            saved[storage] = max(saved.get(storage, 0), t.numel() * t.element_size())
        return t

    def loss(at: Tree) -> tuple[Tensor, Any]:
        out = task.forward(at, fixed, x, train=True, key=0)
        return task.loss(out, Batch(x, y, None, 0, 0)), {}

    saving = torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t)
    counting = _Operations()  # type: ignore[no-untyped-call]
    with counting as operations, saving:
        task.differentiate(loss, trained)
    n = len(x)
    return Cost(
        flop=operations.flop / n,
        saved=sum(saved.values()) / n,
        largest=max(saved.values(), default=0) / n,
        parameters=sum(p.numel() for p in task.module.parameters()),
        weights=_count_bytes(trained),
    )


def estimate_footprint(
    cells: Sequence[Cell],
    states: Sequence[State],
    one: Cost,
    execution: Execution,
    at_once: int,
    *,
    budget: float = float("inf"),
    is_written: bool = False,
) -> float:
    """Return the bytes that runs take at their peak, estimated.

    On the CPU of all processes together, on CUDA of the device.

    Counted: on the CPU Python with torch, and a part of that for each worker; the data set on the
    device (on the CPU also as it was read); states; what the parties of a round will keep and what
    they kept, beside what all keep, or two more copies of all where checkpoints are written; for
    each of the `at_once` jobs its weights, velocity, gradient and start, its upload in float64 and
    what a forward pass of a batch keeps, all jobs together at most `budget`; sums of uploads in
    float64, for each worker; a batch of evaluation. Not counted: what an algorithm adds to a step
    (MOON: two forward passes), what libraries set aside for themselves, messages to workers, the
    context of a GPU.
    """
    is_host = execution.device == "cpu"
    processes = at_once if execution.engine == "processes" else 1
    batch = max(cell.settings.batch_size for cell in cells)
    job = 4 * one.weights + 2 * 8 * one.parameters + batch * 2 * one.saved
    n_models = sum(state.n_models for state in states)
    sums = processes * 2 * 8 * one.parameters * n_models
    state = sum(
        _estimate_state(state, cell.settings.fraction, is_host and is_written)
        for cell, state in zip(cells, states, strict=True)
    )
    base = BASE if is_host else 0.0
    if execution.engine == "processes":
        base += WORKER * processes
    data = (2 if is_host else 1) * _count_examples(cells)
    evaluation = 3 * one.largest * _evaluation_batch(cells, execution)
    return base + data + state + min(at_once * job, budget) + sums + evaluation


def _estimate_state(state: State, fraction: float, is_written: bool) -> float:
    """Return the bytes of a state, and of what is beside it while a round ends."""
    kept = _count_bytes(state.parties)
    held = sum(_count_bytes(part) for part in state.parts.values())
    return held + max(2 * kept * fraction, 2 * held if is_written else 0)


def _count_bytes(values: Tree) -> int:
    return sum(leaf.numel() * leaf.element_size() for leaf in tree.leaves(values))


def _count_examples(cells: Sequence[Cell]) -> int:
    """Return the bytes of all examples. Cells of one split share them: each storage counts once."""
    storages = {}
    for cell in cells:
        for t in _list_tensors(cell.data):
            storage = t.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def _evaluation_batch(cells: Sequence[Cell], execution: Execution) -> int:
    """Return the examples of the largest batch of evaluation."""
    parts = [part for cell in cells for part in (cell.data.test, cell.data.global_test)]
    largest = max(len(part.y) for part in parts if part is not None)
    return min(evaluation_batch_size(torch.device(execution.device)), largest)


def _list_tensors(data: Federated) -> list[Tensor]:
    """Return the tensors of a data set."""
    parts = (data.train, data.val, data.test, data.global_test, data.noisy_test)
    there = [part for part in parts if part is not None]
    return [t for part in there for t in (part.x, part.y, part.rows, part.party)]
