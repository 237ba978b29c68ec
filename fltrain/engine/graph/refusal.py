"""What cannot be captured, found by one small step before the first round."""

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from niidpart.errors import UsageError

from ...interface import Batch, Step
from ..stacked.rows import select_first
from ..stacked.stack import Stack
from ..stacked.trees import describe_leaves

_ELSE = "use --engine stacked"
# Operations whose answer, or the shape of it, the host has to read.
_READS = {
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.nonzero.default,
    torch.ops.aten.masked_select.default,
    torch.ops.aten.equal.default,
    torch.ops.aten.bincount.default,
    torch.ops.aten.repeat_interleave.Tensor,
    torch.ops.aten._unique2.default,
}


class _HostReads(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's
    """Raises where the host reads a value of the device's."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        if func in _READS or _is_index_of_mask(func, args):
            raise _HostReadError(func.overloadpacket._qualified_op_name)
        return func(*args, **(kwargs or {}))


def _is_index_of_mask(func: Any, args: Any) -> bool:
    """Return whether values are taken by truth values: the host has to know how many there are."""
    if func is not torch.ops.aten.index.Tensor:
        return False
    return any(index is not None and index.dtype == torch.bool for index in args[1])


class _HostReadError(Exception):
    """The host reads: by the operation that is told."""


def try_step(stack: Stack, width: int) -> Step:
    """Return the direction of a batch, by a stack of one job that has begun.

    UsageError for what a graph cannot do: values that the host reads, examples besides the batch's,
    another tree carried than `begin` gave.
    """
    name = stack.algorithm.name
    batch = stack.batches.load(0, select_first(1), width)
    step = torch.zeros((), dtype=torch.int64, device=stack.device)
    if stack.mixing.epochs:
        batch = batch._replace(epoch=torch.zeros(1, dtype=torch.int64, device=stack.device))
    stack.batches.iterate_in_order = _refuse_examples(name)  # type: ignore[method-assign]
    try:
        with _HostReads():  # type: ignore[no-untyped-call]  # torch's
            done = stack.direct(select_first(1), batch._replace(step=step))
    except _HostReadError as error:
        raise UsageError(
            f"a step of {name} cannot be captured as a CUDA graph: the host reads a value of the "
            f"device's ({error}), a branch on a tensor or on Batch.step, say; {_ELSE}"
        ) from error
    if describe_leaves(done.carry) != describe_leaves(stack.local.carry):
        raise UsageError(
            f"a step of {name} cannot be captured as a CUDA graph: direction returns another carry "
            f"than begin: {sorted(done.carry)} after {sorted(stack.local.carry)}; carry the same "
            f"from begin on, or {_ELSE}"
        )
    return done


def _refuse_examples(name: str) -> Any:
    def refuse(*place: Any) -> Iterator[Batch]:
        raise UsageError(
            f"a step of {name} cannot be captured as a CUDA graph: direction reads all examples of "
            f"a party (full_grad), whose number differs; {_ELSE}"
        )

    return refuse
