"""Sorting more words than fit in memory."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from ..arithmetic.words import Ints, Words
from .arrays import ArrayFile

_SAMPLES = 1 << 10  # of a run, kept in memory
_WORD = 8  # bytes


class _Lot(NamedTuple):
    """A part of the words, sorted, in the file from a place on.

    samples: every `step`-th of its words, the first among them.
    """

    place: int
    n: int
    step: int
    samples: Words


class SortedRuns:
    """Words that come in any order, and go in ascending order, some at a time.

    Each lot is sorted and written behind the others. To read, all lots are cut at the same words,
    and what lies between two cuts is put together and sorted. The cuts are chosen by samples, so
    that what is put together has about the size of one lot whatever the words are.

    path: a file that is made, and removed by `close`.
    """

    def __init__(self, path: Path):
        self._path = path
        self._file = ArrayFile(path, np.uint64)
        self._runs: list[_Lot] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def add(self, words: Words) -> None:
        """Take a lot of words, which is sorted in its place."""
        if not len(words):
            return
        words.sort()
        step = max(1, len(words) // _SAMPLES)
        samples = words[::step].copy()
        self._runs.append(_Lot(self._file.n, len(words), step, samples))
        self._file.append(words)

    def iterate(self) -> Iterator[Words]:
        """Go through all words in ascending order. Nothing can be added any more."""
        cuts = self._choose_cuts()
        handle = os.open(self._path, os.O_RDONLY)
        try:
            # [number of runs][number of cuts + 2] where each run is cut
            places = [_find_places(handle, run, cuts) for run in self._runs]
            for i in range(len(cuts) + 1):
                pieces = [np.zeros(0, np.uint64)]
                for run, cut in zip(self._runs, places, strict=True):
                    start, stop = cut[i], cut[i + 1]
                    pieces.append(_read(handle, run.place + start, stop - start))
                words = np.concatenate(pieces)
                words.sort()
                if len(words):
                    yield words
        finally:
            os.close(handle)

    def _choose_cuts(self) -> Words:
        """Return words between which there is about as much as in the longest run."""
        if len(self._runs) < 2:
            return np.zeros(0, np.uint64)
        samples = np.concatenate([run.samples for run in self._runs])
        samples.sort()
        # About _SAMPLES samples stand for the words of one run.
        return np.unique(samples[_SAMPLES::_SAMPLES])


def _find_places(handle: int, run: _Lot, cuts: Words) -> list[int]:
    """Return 0, the number of words in a run that are below each cut, and that of all its words."""
    places = [0]
    after: Ints = np.searchsorted(run.samples, cuts)  # the first sample that is not below
    for cut, sample in zip(cuts, after.tolist(), strict=True):
        first = max(0, sample - 1) * run.step
        last = min(sample * run.step, run.n)
        window = _read(handle, run.place + first, last - first)
        places.append(first + int(np.searchsorted(window, cut)))
    return [*places, run.n]


def _read(handle: int, place: int, n: int) -> Words:
    """Return n words of the file from a place on."""
    pieces = []
    while n:
        raw = os.pread(handle, n * _WORD, place * _WORD)
        if not raw:
            raise OSError(errno.EIO, "a temporary file of sorted words was cut off")
        words = np.frombuffer(raw, np.uint64)
        pieces.append(words)
        place += len(words)
        n -= len(words)
    return np.concatenate(pieces) if pieces else np.zeros(0, np.uint64)
