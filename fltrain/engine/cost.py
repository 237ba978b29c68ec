"""What a step costs: floating point operations and memory, counted on two examples.

Nothing is timed: the same run has the same cost anywhere.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from ..inputs.federated import Federated
from ..tasks.model_task import ModelTask
from ..tasks.unlike_task import UnlikeTask

# Recurrent layers as one operation, and how many products with each of their matrices it makes for
# a letter; torch's table does not know them.
_RECURRENT = {
    torch.ops.aten.mkldnn_rnn_layer: 1,
    torch.ops.aten.mkldnn_rnn_layer_backward: 2,
    torch.ops.aten._cudnn_rnn: 1,
    torch.ops.aten._cudnn_rnn_backward: 2,
}


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

    def count_density(self, batch_size: int) -> float:
        """Return the operations of a batch for each byte of activations and weights."""
        moved = self.saved * batch_size + self.weights
        return self.flop * batch_size / moved if moved else 0.0


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

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        out = func(*args, **kwargs or {})
        if func.overloadpacket in flop_registry:
            self.flop += flop_registry[func.overloadpacket](*args, **kwargs or {}, out_val=out)
        elif func.overloadpacket in _RECURRENT:
            self.flop += _RECURRENT[func.overloadpacket] * _count_product(args)
        return out


def _count_product(args: Any) -> int:
    """Return the operations of a recurrent layer's input [T, B, D], once with each matrix.

    args: the input, then the weights, one by one or, on a GPU, as a list.
    """
    x, *others = args
    weights = others[0] if isinstance(others[0], list | tuple) else others[:2]
    matrices = sum(weight.numel() for weight in weights if weight.dim() == 2)
    return int(2 * x.shape[0] * x.shape[1] * matrices)


def count_cost(task: ModelTask, data: Federated) -> Cost:
    """Return the cost of one example, by the task's own loss.

    What an algorithm adds (MOON: two more forward passes) is not in it. This takes one training
    step of two examples: tensors without values (torch's device "meta") load the compiler too. No
    generator moves on. UsageError where the model does not give logits, since nothing runs it
    before.
    """
    parts = task.parts if isinstance(task, UnlikeTask) else [task]
    return max(_count_model(part, data) for part in parts)  # the one of most operations


def _count_model(task: ModelTask, data: Federated) -> Cost:
    """Return the cost of an example for one model."""
    # Not through torch.compile, which would compile for two examples first.
    plain = replace(task, bf16=False, compiled=False)
    batch, device = data.sample, data.device
    plain.require_logits(batch.x, data.n_classes)
    trained, fixed = task.split_weights()
    named = [*trained.values(), *fixed.values()]
    weights = {weight.untyped_storage()._cdata for weight in named}
    saved: dict[int, int] = {}  # bytes by storage: views of one are counted once

    def pack(t: Tensor) -> Tensor:
        storage = t.untyped_storage()._cdata
        if storage not in weights:
            saved[storage] = max(saved.get(storage, 0), t.nbytes)
        return t

    counting = _Operations()  # type: ignore[no-untyped-call]
    saving = torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t)
    keeping_generator = torch.random.fork_rng([device] if device.type == "cuda" else [])
    with keeping_generator, counting as operations, saving:
        plain.try_step(trained, fixed, batch, key=0)
    n = len(batch.y)
    return Cost(
        flop=operations.flop / n,
        saved=sum(saved.values()) / n,
        largest=max(saved.values(), default=0) / n,
        parameters=sum(p.numel() for p in task.module.parameters()),
        weights=sum(weight.nbytes for weight in trained.values()),
    )
