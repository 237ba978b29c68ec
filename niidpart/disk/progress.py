"""How far long work is, for whoever listens.

Who listens is known to the context and not handed from function to function: what a data source
takes are its user's options, and the digest of a part is a property.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from ..arithmetic.words import Array
from .arrays import iterate_pieces

Told = Callable[[str, int, int], None]
"""told(what is done, how much is done, of how much): rows, or what stands in brackets."""

_LONG_ROWS = 1 << 26  # less is read or counted sooner than anybody would ask
_LONG_BYTES = 1 << 28  # and less digested


def tell_nobody(what: str, done: int, total: int) -> None:
    """Take what there is to tell, and tell nobody."""


_told: ContextVar[Told] = ContextVar("told", default=tell_nobody)


@contextlib.contextmanager
def listen(told: Told) -> Iterator[None]:
    """Have what is done meanwhile told, in this thread.

    Examples
    --------
    >>> with listen(print):
    ...     tell("sorting", 5, 900)
    sorting 5 900
    """
    token = _told.set(told)
    try:
        yield
    finally:
        _told.reset(token)


def tell(what: str, done: int, total: int) -> None:
    """Say that `done` of `total` rows are through a step."""
    _told.get()(what, done, total)


def tell_many(what: str, done: int, total: int) -> None:
    """Say the same where the rows are many."""
    if total >= _LONG_ROWS:
        tell(what, done, total)


def tell_bytes(what: str, done: int, total: int) -> None:
    """Say that `done` of `total` bytes are through a step, where they are many."""
    if total >= _LONG_BYTES:
        tell(f"{what} (MB)", done // 10**6, total // 10**6)


def iterate_told(array: Array, what: str) -> Iterator[tuple[int, Array]]:
    """Go through (first place, values) of an array [n], and tell how far it is."""
    for start, values in iterate_pieces(array):
        yield start, values
        tell(what, start + len(values), len(array))
