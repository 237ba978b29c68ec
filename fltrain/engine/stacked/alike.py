"""Which algorithms can share a stack: those of the same functions, though their numbers differ."""

from typing import Any

from torch import Tensor

from ...interface import Algorithm

_OF_A_JOB = ("begin", "direction", "finish", "decay", "lockstep")


def can_share_stack(a: Algorithm, b: Algorithm) -> bool:
    """Return whether the functions of one do for the jobs of the other, with the other's numbers.

    Functions are compared by `==`: a module's function is equal to itself, an
    `affine.AffineDirection` to one of the same terms.
    One that a constructor defines anew for each algorithm equals no other, as it may read an option
    that `hyper` does not say; such algorithms are stacked apart. The functions of the server are
    not compared, since each run calls its own.
    """
    if any(getattr(a, part) != getattr(b, part) for part in _OF_A_JOB):
        return False
    if a.hyper.keys() != b.hyper.keys():
        return False
    return all(_can_stand_together(value, b.hyper[name]) for name, value in a.hyper.items())


def _can_stand_together(a: Any, b: Any) -> bool:
    """Return whether a stack can hand each job its own value: it can for floats.

    Anything else, a whole number that counts a loop, say, is one value for all.
    """
    if a is b or (type(a) is float and type(b) is float):
        return True
    return type(a) is type(b) and not isinstance(a, Tensor) and bool(a == b)
