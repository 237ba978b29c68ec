"""Values of an option, read off its declaration: no test has to know what options there are."""

import math
import typing

from hypothesis import strategies as st

from niidpart.registry import Above, AtLeast, AtMost, Below

FAR = 1_000_000  # where an option has no bound on that side


def kind_of(option):
    """int, float, bool, str or a Literal; `X | None` is X, and so is `tuple[X, ...]`."""
    arguments = typing.get_args(option.annotation)
    if type(None) in arguments:
        return next(kind for kind in arguments if kind is not type(None))
    return arguments[0] if is_tuple(option) else option.annotation


def is_tuple(option):
    return typing.get_origin(option.annotation) is tuple


def bounds_of(option):
    """(least, most) of the values that a number may have, -inf and inf where it is not bounded."""
    least, most = -math.inf, math.inf
    step = 1 if kind_of(option) is int else 1e-3
    for bound in option.ranges:
        match bound:
            case AtLeast(low=low):
                least = low
            case Above(low=low):
                least = low + step
            case AtMost(high=high):
                most = high
            case Below(high=high):
                most = high - step
    return least, most


def edges(option):
    """Values that are just inside the declared range, or all that there are."""
    kind = kind_of(option)
    if typing.get_origin(kind) is typing.Literal:
        return list(typing.get_args(kind))
    if kind is bool:
        return [False, True]
    least, most = bounds_of(option)
    ends = [0 if math.isinf(least) else least, FAR if math.isinf(most) else most]
    return [(kind(end),) if is_tuple(option) else kind(end) for end in ends]


def outsiders(option):
    """Values that are just outside the declared range; none where it has none."""
    kind, step = kind_of(option), 1 if kind_of(option) is int else 1e-3
    values = []
    for bound in option.ranges:
        match bound:
            case AtLeast(low=low):
                values.append(kind(low - step))
            case Above(low=low):
                values.append(kind(low))
            case AtMost(high=high):
                values.append(kind(high + max(step, high * 1e-3)))
            case Below(high=high):
                values.append(kind(high))
    return [(value,) for value in values] if is_tuple(option) else values


def values_of(option):
    """A hypothesis strategy: values within the declared range, near its lower end where it is wide."""
    kind = kind_of(option)
    if typing.get_origin(kind) is typing.Literal or kind in (bool, str):
        return st.sampled_from(edges(option))
    least, most = bounds_of(option)
    low = 0 if math.isinf(least) else least
    if kind is int:
        values = st.integers(low, min(low + 6, most))
    else:
        wide = st.sampled_from([x for x in (0.02, 0.5, 1.0, 100.0) if low <= x <= most])
        values = wide if most > 1 else st.floats(low, most)
    return values if option.default is not None else st.none() | values
