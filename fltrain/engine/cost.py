"""What a step costs: floating point operations and memory, counted on two examples. Nothing is timed: the same run has the same cost anywhere."""

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
from .jobs import Cell

BASE, WORKER = (
    2.2e8,
    4e7,
)  # bytes: Python with torch, numpy and h5py; what a worker has for itself (measured)
_EXAMPLES = 2  # batch norm needs two


class Cost(NamedTuple):
    """Of the model. flop: operations of a forward and backward pass of one example (matrix products and convolutions; a multiplication and an
    addition are two). saved: bytes that the forward pass of one example keeps for the backward pass; largest: those of the largest tensor among
    them. parameters: their number; weights: bytes of those that are trained."""

    flop: float
    saved: float
    largest: float
    parameters: int
    weights: int


class _Operations(TorchDispatchMode):
    """Adds up what `torch.utils.flop_counter` says of each operation. Its own mode loads torch's compiler, which takes as long as a short run."""

    flop = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **kwargs or {})
        if func.overloadpacket in flop_registry:
            self.flop += flop_registry[func.overloadpacket](*args, **kwargs or {}, out_val=out)
        return out


def cost(task: ModelTask, data: Federated) -> Cost:
    """That of one example, by the task's own loss. What an algorithm adds (MOON: two more forward passes) is not in it.

    Takes one training step of two examples: tensors without values (torch's device "meta") load the compiler too. No generator moves on.
    """
    task = replace(task, bf16=False, compiled=False)
    x, y = data.train.inputs(slice(0, _EXAMPLES)), data.train.y[:1].expand(_EXAMPLES)
    named = {name: p.detach() for name, p in task.module.named_parameters()} | dict(
        task.module.named_buffers()
    )
    with torch.random.fork_rng([x.device] if x.device.type == "cuda" else []):
        return _counted(task, named, x.expand(_EXAMPLES, *x.shape[1:]), y)


def _counted(task: ModelTask, named: Tree, x: Tensor, y: Tensor) -> Cost:
    trained = {name: named[name] for name, p in task.module.named_parameters() if p.requires_grad}
    fixed = {name: t for name, t in named.items() if name not in trained}
    apart = {t.untyped_storage()._cdata for t in named.values()}
    saved: dict[int, int] = {}

    def pack(t: Tensor) -> Tensor:
        storage = t.untyped_storage()._cdata
        if storage not in apart:
            saved[storage] = max(saved.get(storage, 0), t.numel() * t.element_size())
        return t

    def loss(at: Tree) -> tuple[Tensor, Any]:
        return task.loss(task.forward(at, fixed, x, train=True, key=0), Batch(x, y, None, 0, 0)), {}

    with _Operations() as counted, torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        task.differentiate(loss, trained)
    n, kept, largest = len(x), sum(saved.values()), max(saved.values(), default=0)
    weights = sum(t.numel() * t.element_size() for t in trained.values())
    return Cost(
        counted.flop / n,
        kept / n,
        largest / n,
        sum(p.numel() for p in task.module.parameters()),
        weights,
    )


def footprint(
    cells: Sequence[Cell],
    states: Sequence[State],
    one: Cost,
    at_once: int,
    *,
    budget: float = float("inf"),
    written: bool = False,
) -> float:
    """Bytes that a run takes at its peak, estimated: on the CPU of all its processes together, on CUDA of the device.

    Counted: on the CPU Python with torch, and a part of that for each worker; the data set on the device (on the CPU also as it was read); states;
    what the parties of a round will keep and what they kept, beside what all keep, or two more copies of all where checkpoints are `written`; for
    each of the `at_once` jobs its weights, velocity, gradient and start, its upload in float64 and what a forward pass of a batch keeps, all jobs
    together at most `budget`; sums of uploads in float64, for each worker; a batch of evaluation. Not counted: what an algorithm adds to a step
    (MOON: two forward passes), what libraries set aside for themselves, messages to workers, the context of a GPU.
    """
    settings, host = cells[0].settings, cells[0].data.train.y.device.type == "cpu"
    data = sum(
        {
            t.untyped_storage().data_ptr(): t.untyped_storage().nbytes()
            for cell in cells
            for t in _held(cell.data)
        }.values()
    )
    kept = sum(_bytes(state.parties) for state in states)
    state = kept + sum(
        _bytes(part) for state in states for part in (state.models, state.buffers, state.server)
    )
    state += max(2 * kept * settings.fraction, 2 * state if host and written else 0)
    job = 4 * one.weights + 2 * 8 * one.parameters + settings.batch_size * 2 * one.saved
    processes = at_once if settings.engine == "processes" else 1
    sums = processes * 2 * 8 * one.parameters * sum(len(tree.leaves(s.models)[0]) for s in states)
    tested = max(
        len(part.y)
        for cell in cells
        for part in (cell.data.test, cell.data.global_test)
        if part is not None
    )
    evaluation = 3 * one.largest * min(evaluation_batch_size(cells[0].data.train.y.device), tested)
    before = BASE + (WORKER * processes if settings.engine == "processes" else 0) if host else 0.0
    return (
        before + (2 if host else 1) * data + state + min(at_once * job, budget) + sums + evaluation
    )


def _bytes(values: Tree) -> int:
    return sum(t.numel() * t.element_size() for t in tree.leaves(values))


def _held(data: Federated) -> list[Tensor]:
    """The tensors of a data set."""
    parts = [
        part
        for part in (data.train, data.val, data.test, data.global_test, data.noisy_test)
        if part is not None
    ]
    return [t for part in parts for t in (part.x, part.y, part.rows, part.party)]
