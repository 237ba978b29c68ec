"""What would take a campaign weeks, without leaving a check out.

`Memory`: a split that was derived before is not derived again, nor the skew of a good file's counts measured again;
that of other counts is measured once for the readers of a mutant, with few replicates. That is for mutants that are
accepted; `judge.py` says which do without.
"""

import contextlib
from collections.abc import Iterator
from unittest import mock

import numpy as np
from corpus import registry

from niidpart import derive
from niidpart.checking import rederivation
from niidpart.heterogeneity import Skew, chance, concentration, measure
from niidpart.splits import dealing
from niidpart.splits.split import FederatedSplit

from .bases import Base

_FEW = 8  # replicates
_MOST = 5000  # derived splits that are kept


class Memory:
    """What the good files' recipes and counts give: the same for most mutants of them."""

    def __init__(self, bases: list[Base]):
        self._known = {base.answers["train/counts"] for base in bases}
        self._measured: dict[tuple[bytes, str], Skew] = {}
        # of the last counts that no good file has
        self._roughly: dict[tuple[bytes, str], Skew] = {}
        self._derived: dict[tuple[str, int], FederatedSplit] = {}

    def measure(self, counts, reading=None, moves=None) -> Skew:
        """`heterogeneity.measure`; of counts that no good file has, with few replicates."""
        moved = None if moves is None else moves.tolist()
        values = counts.astype(np.int64).tobytes()
        key = (values, repr((counts.shape, counts.dtype, reading, moved)))
        if values in self._known:
            if key not in self._measured:
                self._measured[key] = measure(counts, reading, moves)
            return self._measured[key]
        if key not in self._roughly:
            with few_replicates():
                self._roughly = {key: measure(counts, reading, moves)}
        return self._roughly[key]

    def derive(self, data, recipe, given=None) -> FederatedSplit:
        """`niidpart.derive`, once for each data set and recipe."""
        if given is not None:
            return derive(data, recipe, given=given)
        key = (registry.canonical(recipe.to_json()), id(data))
        if key not in self._derived:
            if len(self._derived) >= _MOST:
                self._derived.clear()
            self._derived[key] = derive(data, recipe)
        return self._derived[key]

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        with (
            mock.patch.object(dealing, "measure", self.measure),
            mock.patch.object(rederivation, "derive", self.derive),
        ):
            yield


@contextlib.contextmanager
def few_replicates() -> Iterator[None]:
    """Draw so few that the intervals are rough: whether a reader copes with the counts is asked."""
    with (
        mock.patch.multiple(chance, REPLICATES=_FEW, FEW=_FEW),
        mock.patch.object(concentration, "_STEPS", 2 * _FEW),
    ):
        yield
