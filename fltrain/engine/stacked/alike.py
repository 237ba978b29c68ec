"""Whether two functions do the same: what one algorithm says may stand for what another says only then."""

import functools
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import Tensor

_PLAIN = (int, float, complex, bool, str, bytes, type(None))
_ITSELF = (type, ModuleType, BuiltinFunctionType)  # one and the same, or different
_ABSENT = object()


def alike(a: Any, b: Any) -> bool:
    """Whether b can stand for a: the same object; equal plain values, tensors, or containers of such; functions of equal code, and alike in all that
    they read: their closure, their defaults, and globals where they are of two copies of a file. What cannot be compared is not alike.
    """
    return _alike(a, b, set())


def _alike(a: Any, b: Any, met: set[tuple[int, int]]) -> bool:
    """met: pairs that are being compared further up, which a function that calls itself comes back to."""
    if a is b or (id(a), id(b)) in met:
        return True
    if type(a) is not type(b) or isinstance(a, _ITSELF):
        return False
    if isinstance(a, _PLAIN):
        return bool(a == b)
    if isinstance(a, Tensor):
        return (a.dtype, a.device, a.shape) == (b.dtype, b.device, b.shape) and torch.equal(a, b)
    met = met | {(id(a), id(b))}
    if type(a) is dict:
        return a.keys() == b.keys() and all(_alike(a[k], b[k], met) for k in a)
    if type(a) in (tuple, list):
        return len(a) == len(b) and all(_alike(p, q, met) for p, q in zip(a, b, strict=True))
    if isinstance(a, FunctionType):
        return _same_function(a, b, met)
    if isinstance(a, MethodType):
        return _alike((a.__func__, a.__self__), (b.__func__, b.__self__), met)
    if type(a) is functools.partial:
        return _alike((a.func, a.args, a.keywords), (b.func, b.args, b.keywords), met)
    if is_dataclass(a):
        return all(_alike(getattr(a, f.name), getattr(b, f.name), met) for f in fields(a))
    return False


def _same_function(a: FunctionType, b: FunctionType, met: set[tuple[int, int]]) -> bool:
    if a.__code__ != b.__code__ or not _alike(vars(a), vars(b), met):
        return False
    defaults = _alike((a.__defaults__, a.__kwdefaults__), (b.__defaults__, b.__kwdefaults__), met)
    return (
        defaults
        and _alike(_closure(a), _closure(b), met)
        and (a.__globals__ is b.__globals__ or _alike(_globals(a), _globals(b), met))
    )


def _closure(f: FunctionType) -> list[Any]:
    """What its cells hold; a cell that is still empty holds something of its own, which equals nothing."""
    out = []
    for cell in f.__closure__ or ():
        try:
            out.append(cell.cell_contents)
        except ValueError:  # so python says that it is empty
            out.append(object())
    return out


def _globals(f: FunctionType) -> dict[str, Any]:
    """Those that its code may read."""
    return {name: f.__globals__.get(name, _ABSENT) for name in sorted(set(_names(f.__code__)))}


def _names(code: CodeType) -> Iterator[str]:
    """Names of globals, and of attributes, in its code and in that of the functions that it makes."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
