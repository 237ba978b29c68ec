"""Reads the pickled batches that CIFAR is published in, and nothing else that a pickle can say.

A pickle is a program. The one that runs here may name seven functions, and each is a stand-in of this file: no function of numpy or of
anybody else is ever called, so what comes out is dicts, lists, numbers, text and arrays of uint8. The unpickler is the one written in python:
the one in C takes memory by the size that a file declares. It knows the opcodes that such files need, and what comes out is a tree: nothing
but short text is used twice, so that neither time nor memory is more than the file is long. Names of a dict are text.
"""

import io
import math
import pickle
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ...errors import FileFault

_LARGEST = 1 << 30  # bytes; the largest there is, CIFAR-100's training set, has 155 MB
_DEEPEST = 8  # dict, list and tuple in each other; such a batch has 3
_SHARED = 256  # characters of a text that may be used twice


def unpickle_batch(path: Path) -> Any:
    """What the pickle holds; text of python 2 as bytes. FileFault that names the file, for damage and for anything that such files do not need."""
    size = path.stat().st_size
    if size > _LARGEST:
        raise FileFault(f"{path} has {size} bytes; such a batch has at most {_LARGEST}")
    try:
        return _finished(_Restricted(io.BytesIO(path.read_bytes()), encoding="bytes").load())
    except OSError:
        raise
    except Exception as error:  # a stranger's program may fail in any way
        raise FileFault(
            f"{path} is no such batch ({type(error).__name__}: {str(error)[:200]}); fetch it again"
        ) from error


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
            raise pickle.UnpicklingError("an array with a byte order; uint8 has none")


class _Name:
    """A function that a pickle may name."""

    __slots__ = ("call",)

    def __init__(self, call: Any):
        self.call = call

    def __call__(self, *arguments: Any) -> Any:
        return self.call(*arguments)


def _uint8(raw: Any, kind: Any, shape: Any, order: Any) -> Any:
    values = np.frombuffer(raw.encode("latin1") if isinstance(raw, str) else raw, np.uint8)
    shape = shape if isinstance(shape, tuple) else (shape,)
    fits = (
        len(shape) <= 4
        and all(type(n) is int and 0 <= n <= _LARGEST for n in shape)
        and len(values) <= _LARGEST
    )
    if (
        not isinstance(kind, _Kind)
        or order not in ("C", "F")
        or not fits
        or math.prod(shape) != len(values)
    ):
        raise pickle.UnpicklingError(
            f"an array that holds {len(values)} bytes and says another shape or type"
        )
    return values.reshape(shape, order=order)


def _kind(name: Any, *flags: Any) -> _Kind:
    if name not in ("u1", b"u1"):
        raise pickle.UnpicklingError(f"an array of type {_told(name)}; uint8 is needed")
    return _Kind()


def _told(value: Any) -> str:
    """A stranger's value for a message: short text as it is, of all else the type."""
    return repr(value[:40]) if type(value) in (str, bytes) else type(value).__name__


def _no_call(*arguments: Any) -> Any:
    raise pickle.UnpicklingError("it calls what it may only name")


def _encode(text: Any, encoding: Any) -> bytes:
    if type(text) is not str or encoding != "latin1":
        raise pickle.UnpicklingError("it encodes something else than bytes")
    return text.encode("latin1")


_CORES = ("numpy.core", "numpy._core")
_NAMES = {
    **{
        (f"{core}.multiarray", "_reconstruct"): _Name(lambda kind, shape, code: _Array())
        for core in _CORES
    },
    **{(f"{core}.numeric", "_frombuffer"): _Name(_uint8) for core in _CORES},
    ("numpy", "ndarray"): _Name(_no_call),
    ("numpy", "dtype"): _Name(_kind),
    ("_codecs", "encode"): _Name(_encode),
}


_OPCODES = """  of all protocols, without sets, classes, instances, floats, extensions, references outside, long numbers and DUP:
    MARK STOP POP POP_MARK INT BININT BININT1 BININT2 LONG LONG1 NONE NEWTRUE NEWFALSE STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE
    SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8 EMPTY_DICT DICT SETITEM SETITEMS EMPTY_LIST LIST APPEND APPENDS
    EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT MEMOIZE GLOBAL STACK_GLOBAL REDUCE BUILD PROTO FRAME
    """.partition(":")[2]


class _Restricted(pickle._Unpickler):
    """The unpickler written in python, with those opcodes alone."""

    stack: list[Any]  # what lies above the last mark
    read: Any
    append: Any
    dispatch: ClassVar[dict[int, Any]]

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _NAMES:
            raise pickle.UnpicklingError(
                f"it names {module[:80]}.{name[:80]}, which no such batch needs"
            )
        return _NAMES[module, name]

    def _got(self, read: Any) -> None:
        read(self)
        value = self.stack[-1]
        if not (
            isinstance(value, _Name | _Kind)
            or (type(value) in (str, bytes) and len(value) <= _SHARED)
        ):
            raise pickle.UnpicklingError(f"it uses a {type(value).__name__} twice")

    def _set(self, write: Any) -> None:
        """Keys of dicts are text: nothing else is hashed."""
        keys = self.stack[-2:-1] if write is pickle._Unpickler.load_setitem else self.stack[::2]  # type: ignore[attr-defined]
        if any(type(key) not in (str, bytes) for key in keys):
            raise pickle.UnpicklingError("a dict with names that are no text")
        write(self)

    def _reduced(self) -> None:
        arguments = self.stack.pop()
        function = self.stack[-1]
        if type(function) is not _Name or type(arguments) is not tuple:
            raise pickle.UnpicklingError("it calls what is no function")
        _flat(arguments)
        self.stack[-1] = function(*arguments)

    def _built(self) -> None:
        state = self.stack.pop()
        if type(self.stack[-1]) not in (_Array, _Kind):
            raise pickle.UnpicklingError(f"it sets the state of a {type(self.stack[-1]).__name__}")
        _flat(state)
        self.stack[-1].__setstate__(state)

    def _bytearray(self) -> None:
        """As it is read, not as it is declared."""
        size = int.from_bytes(self.read(8), "little")
        raw = self.read(size)
        if len(raw) != size:
            raise pickle.UnpicklingError(f"{len(raw)} bytes that say they are {size}")
        self.append(bytearray(raw))

    def _unknown(self) -> None:
        raise pickle.UnpicklingError("an opcode that no such batch needs")


def _loaders(names: str) -> list[tuple[int, Any]]:
    """(opcode, the method that reads it) of opcodes."""
    codes = [getattr(pickle, name)[0] for name in names.split()]
    return [(code, pickle._Unpickler.dispatch[code]) for code in codes]


def _dispatch() -> dict[int, Any]:
    """{opcode: method} of every opcode; those that are not needed are an error."""
    methods = dict.fromkeys(range(256), _Restricted._unknown) | dict(_loaders(_OPCODES))
    methods |= {
        code: partial(_Restricted._got, read=read)
        for code, read in _loaders("GET BINGET LONG_BINGET")
    }
    methods |= {
        code: partial(_Restricted._set, write=write)
        for code, write in _loaders("DICT SETITEM SETITEMS")
    }
    own = (_Restricted._reduced, _Restricted._built, _Restricted._bytearray)
    return methods | {
        code: method
        for (code, _), method in zip(_loaders("REDUCE BUILD BYTEARRAY8"), own, strict=True)
    }


_Restricted.dispatch = _dispatch()


def _flat(value: Any) -> None:
    """UnpicklingError where dicts, lists and tuples are nested deeper than any batch needs."""
    level = [value]
    for _ in range(_DEEPEST + 1):
        held = [v for v in level if type(v) in (dict, list, tuple)]
        level = [item for v in held for item in (v.values() if type(v) is dict else v)]
        if not held:
            return
    raise pickle.UnpicklingError(f"values nested more than {_DEEPEST} deep")


def _finished(value: Any) -> dict[str, Any]:
    """A dict with text as keys and arrays as values where arrays were built."""
    if type(value) is not dict or not all(type(key) in (str, bytes) for key in value):
        raise pickle.UnpicklingError("it holds no dict with names")
    _flat(value)
    if any(isinstance(v, _Array) and v.values is None for v in value.values()):
        raise pickle.UnpicklingError("an array that is never given its values")
    plain = {
        key.decode("latin1") if type(key) is bytes else key: v.values
        if isinstance(v, _Array)
        else v
        for key, v in value.items()
    }
    if bad := [key for key, v in plain.items() if isinstance(v, _Name | _Kind)]:
        raise pickle.UnpicklingError(f"{_told(bad[0])} is neither numbers nor text")
    return plain
