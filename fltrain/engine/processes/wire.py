"""What travels over a pipe between processes: trees of tensors and numbers as bytes, and errors."""

import builtins
import io
import pickle
import traceback
from typing import Any, NamedTuple

import torch
from torch import Tensor

_ALIGNED = 64  # bytes: what torch's allocator gives


class _Pickler(pickle.Pickler):
    """Python's, but for tensors: what they show goes, in any type and layout, not the storage that they are views of."""

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, Tensor):
            return NotImplemented
        dense = obj.detach().resolve_conj().resolve_neg()
        dense = (
            dense if dense.is_contiguous() else dense.clone()
        )  # keeps the order of the axes in memory where there are no gaps
        data: Any = dense.as_strided((dense.numel(),), (1,)).view(torch.uint8).numpy()
        return _tensor, (
            dense.dtype,
            tuple(dense.shape),
            dense.stride(),
            dense.data_ptr() % _ALIGNED,
            pickle.PickleBuffer(data),
        )


def _tensor(
    dtype: torch.dtype,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    data: bytearray,
) -> Tensor:
    """The tensor again, as far from a multiple of 64 bytes as it was: the last bits of some products depend on that."""
    memory = torch.empty(offset + len(data), dtype=torch.uint8)
    if data:
        memory[offset:] = torch.frombuffer(data, dtype=torch.uint8)
    return memory[offset:].view(dtype).as_strided(shape, stride)


def encode(message: Any) -> memoryview:
    """The bytes of a message. Tensors have to be on the CPU; code does not travel but by its name."""
    out = io.BytesIO()
    _Pickler(out, protocol=5).dump(message)
    return out.getbuffer()


def decode(data: bytes) -> Any:
    """The message. For bytes of processes of our own alone: what a stranger wrote could run anything."""
    return pickle.loads(data)


class Failure(NamedTuple):
    """An error as it travels. kind: the built-in class that it is, or is nearest to; args: what that is made of; trace: as it was seen there."""

    kind: str
    args: tuple[Any, ...]
    notes: list[str]
    trace: str


class WorkerTraceback(Exception):
    """The cause of an error that another process raised: its traceback there."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def describe_failure(error: Exception) -> Failure:
    """The error, ready to travel. One that is no built-in goes as the nearest that is (a user's kind of ValueError as that), with its text."""
    kind = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
    args: Any = error.__reduce__()[1]  # of an OSError also the file, which `args` leaves out
    if kind is not type(error) or not all(
        isinstance(a, str | bytes | int | float | None) for a in args
    ):
        args = (str(error) if kind is type(error) else f"{type(error).__qualname__}: {error}",)
    name = "RuntimeError" if kind is Exception else kind.__name__
    return Failure(
        name,
        args,
        list(getattr(error, "__notes__", [])),
        "".join(traceback.format_exception(error)),
    )


def rebuild_error(failure: Failure) -> Exception:
    """The error again, to be raised here."""
    try:
        error: Exception = getattr(builtins, failure.kind)(*failure.args)
    except TypeError:  # a class whose text is made of more than was sent
        error = RuntimeError(*failure.args)
    for note in failure.notes:
        error.add_note(note)
    error.__cause__ = WorkerTraceback(failure.trace)
    return error
