"""Reads the pickled batches that CIFAR is published in, and nothing else that a pickle can say.

A pickle is a program. The one that runs here may name seven functions, and each is a stand-in of this file: no function of numpy or of
anybody else is ever called, so what comes out is dicts, lists, numbers, text and arrays of uint8. The unpickler is the one written in python:
the one in C takes memory by the size that a file declares.
"""

import io
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from ..files import FileFault

_LARGEST = 1 << 30  # bytes; the largest there is, CIFAR-100's training set, has 155 MB


def restricted_load(path: Path) -> Any:
    """What the pickle holds; text of python 2 as bytes. FileFault that names the file, for damage and for anything that such files do not need."""
    size = path.stat().st_size
    if size > _LARGEST:
        raise FileFault(f"{path} has {size} bytes; such a batch has at most {_LARGEST}")
    try:
        return _finished(_Restricted(io.BytesIO(path.read_bytes()), encoding="bytes").load())
    except OSError:
        raise
    except Exception as error:  # a stranger's program may fail in any way
        raise FileFault(f"{path} is no such batch ({type(error).__name__}: {str(error)[:200]}); fetch it again") from error


class _Array:
    """An array while it is built: `_reconstruct`, then its state."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: Any = None

    def __setstate__(self, state: Any) -> None:
        _version, shape, kind, by_column, raw = state
        self.values = _uint8(raw, kind, shape, "F" if by_column else "C")


class _Kind:
    """A numpy type while it is built: uint8 alone."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        if state[1] not in ("|", b"|"):
            raise pickle.UnpicklingError(f"an array of byte order {state[1]!r}; uint8 has none")


class _Name:
    """A function that a pickle may name. It has no attributes that a pickle could set."""

    __slots__ = ("call",)
    call: Any

    def __init__(self, call: Any):
        object.__setattr__(self, "call", call)

    def __setattr__(self, name: str, value: Any) -> None:
        raise pickle.UnpicklingError(f"it sets {name!r} on a function")

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("it sets the state of a function")

    def __call__(self, *arguments: Any) -> Any:
        return self.call(*arguments)


def _uint8(raw: Any, kind: Any, shape: Any, order: Any) -> Any:
    values = np.frombuffer(raw.encode("latin1") if isinstance(raw, str) else raw, np.uint8)
    shape = shape if isinstance(shape, tuple) else (shape,)
    fits = len(shape) <= 4 and all(type(n) is int and 0 <= n <= _LARGEST for n in shape) and len(values) <= _LARGEST
    if not isinstance(kind, _Kind) or order not in ("C", "F") or not fits or math.prod(shape) != len(values):
        raise pickle.UnpicklingError(f"an array that says {shape} and holds {len(values)} bytes")
    return values.reshape(shape, order=order)


def _kind(name: Any, *flags: Any) -> _Kind:
    if name not in ("u1", b"u1"):
        raise pickle.UnpicklingError(f"an array of type {name!r}; uint8 is needed")
    return _Kind()


def _no_call(*arguments: Any) -> Any:
    raise pickle.UnpicklingError("it calls what it may only name")


def _encode(text: Any, encoding: Any) -> bytes:
    if type(text) is not str or encoding != "latin1":
        raise pickle.UnpicklingError("it encodes something else than bytes")
    return text.encode("latin1")


_CORES = ("numpy.core", "numpy._core")
_NAMES = {
    **{(f"{core}.multiarray", "_reconstruct"): _Name(lambda kind, shape, code: _Array()) for core in _CORES},
    **{(f"{core}.numeric", "_frombuffer"): _Name(_uint8) for core in _CORES},
    ("numpy", "ndarray"): _Name(_no_call),
    ("numpy", "dtype"): _Name(_kind),
    ("_codecs", "encode"): _Name(_encode),
}


class _Restricted(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _NAMES:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which no such batch needs")
        return _NAMES[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it refers to something outside")

    def get_extension(self, code: int) -> Any:
        raise pickle.UnpicklingError("it refers to an extension")


def _finished(value: Any) -> dict[str, Any]:
    """A dict with text as keys and arrays as values where arrays were built."""
    if type(value) is not dict or not all(type(key) in (str, bytes) for key in value):
        raise pickle.UnpicklingError("it holds no dict with names")
    if any(isinstance(v, _Array) and v.values is None for v in value.values()):
        raise pickle.UnpicklingError("an array that is never given its values")
    plain = {key.decode("latin1") if type(key) is bytes else key: v.values if isinstance(v, _Array) else v for key, v in value.items()}
    if bad := [key for key, v in plain.items() if isinstance(v, _Name | _Kind)]:
        raise pickle.UnpicklingError(f"{bad[0]!r} is neither numbers nor text")
    return plain
