"""The random order in which the rows of a deal go to its holders."""

import contextlib
from threading import Event, Thread
from types import TracebackType
from typing import Self

import numpy as np

from ..arithmetic.rng import Ints, Stream
from .beside import start_beside

_PATIENCE = 0.005  # seconds after which a strategy is taken for one that draws many numbers


def draw_order(labels: Ints, rng: Stream, *, by_class: bool) -> Ints:
    """Return all rows in random order, class by class or not. rng: the stream of the strategy."""
    ordered_by = labels if by_class else np.zeros(len(labels), np.int64)
    n_classes = int(ordered_by.max()) + 1
    return rng.child("order").grouped_permutation(ordered_by, n_classes)


class EarlyOrder:
    """The order by class, drawn in a thread while a strategy that takes long makes its deal.

    That is the order of nearly every deal. It hangs on the stream's name and the labels alone, so
    it is the same whenever it is drawn; how long the strategy takes decides when, and no more. A
    deal that is not by class has its own drawn.
    """

    def __init__(self, labels: Ints, rng: Stream):
        self._labels, self._rng = labels, rng
        self._early: Ints | None = None
        self._is_dealt = Event()
        self._drawing: Thread | None = None

    def __enter__(self) -> Self:
        self._drawing = start_beside(self._draw_if_long, len(self._labels), "order")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_dealt.set()
        if self._drawing is not None:
            self._drawing.join()

    def take(self, *, by_class: bool) -> Ints:
        """Return the order that a deal asks for."""
        early, self._early = self._early, None
        if early is not None and by_class:
            return early
        return draw_order(self._labels, self._rng, by_class=by_class)

    def _draw_if_long(self) -> None:
        if self._is_dealt.wait(_PATIENCE):
            return
        with contextlib.suppress(MemoryError):  # it is met again, where it can be told
            self._early = draw_order(self._labels, self._rng, by_class=True)
