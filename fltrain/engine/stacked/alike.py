"""Which algorithms can share a stack: those of the same functions, though their numbers differ."""

from dataclasses import fields, is_dataclass
from typing import Any

from ...interface import Algorithm

_OF_A_JOB = ("begin", "direction", "finish", "decay", "lockstep")


def can_share_stack(a: Algorithm, b: Algorithm) -> bool:
    """Return whether the functions of one do for the jobs of the other, with the other's numbers.

    A module's function is itself, and an `affine.AffineDirection` is its terms. A function that a
    constructor defines anew for each algorithm is the same as no other, as it may read an option
    that `hyper` does not say; such algorithms are stacked apart. The functions of the server are
    not compared, since each run calls its own.
    """
    if not all(is_same(getattr(a, part), getattr(b, part)) for part in _OF_A_JOB):
        return False
    if a.hyper.keys() != b.hyper.keys():
        return False
    return all(_can_stand_together(value, b.hyper[name]) for name, value in a.hyper.items())


def _can_stand_together(a: Any, b: Any) -> bool:
    """Return whether a stack can hand each job its own value: it can for floats.

    Anything else, a whole number that counts a loop, say, is one value for all.
    """
    if type(a) is float and type(b) is float:
        return True
    return is_same(a, b)


def is_same(a: Any, b: Any) -> bool:
    """Return whether one value does in the place of the other, of the same types throughout.

    Containers and dataclasses are compared part by part. What has no plain `==` (tensors, arrays)
    is the same only where it is one object: to stack apart is slower, and never wrong.
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        if a.keys() != b.keys():
            return False
        return all(is_same(value, b[key]) for key, value in a.items())
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(is_same, a, b))
    if is_dataclass(a) and not isinstance(a, type):
        names = [part.name for part in fields(a)]
        is_compared = a.__dataclass_params__.eq  # type: ignore[attr-defined]  # its decorator's
        return is_compared and all(is_same(getattr(a, n), getattr(b, n)) for n in names)
    try:
        equal = a == b
    except (TypeError, ValueError, RuntimeError):
        return False
    return equal is True  # an array answers `==` by an array
