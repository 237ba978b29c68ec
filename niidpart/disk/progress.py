"""How far long work is, for whoever asked to be told."""

from collections.abc import Callable, Iterator

from ..arithmetic.words import Array
from .arrays import iterate_pieces

Told = Callable[[str, int, int], None]
"""told(what is done, rows done, of how many)."""


def tell_nobody(what: str, done: int, total: int) -> None:
    """Take what there is to tell, and tell nobody."""


def iterate_told(array: Array, what: str, told: Told) -> Iterator[tuple[int, Array]]:
    """Go through (first place, values) of an array [n], and tell how far it is."""
    for start, values in iterate_pieces(array):
        yield start, values
        told(what, start + len(values), len(array))
