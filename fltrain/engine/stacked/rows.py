"""Some jobs of a stack: which rows of a tensor [J, ...] are theirs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class StackRows:
    """R jobs of a stack, by their places in it, ascending.

    places: on the host. index: the same, [R] on the device; None for the first R jobs, whose rows
    are a slice.
    """

    places: Sequence[int]
    index: Tensor | None = None

    @property
    def are_first(self) -> bool:
        """Whether these are the first jobs of the stack."""
        return self.index is None

    def select(self, values: Tensor) -> Tensor:
        """Return the rows of these jobs, [R, ...] of [J, ...]: a view of the first jobs, else a
        copy.
        """
        if self.index is None:
            return values[: len(self.places)]
        return values[self.index]

    def pick(self, values: npt.NDArray[np.int64]) -> list[int]:
        """Return the numbers of these jobs, of those [J] that are on the host."""
        if self.index is None:
            return values[: len(self.places)].tolist()  # type: ignore[no-any-return]
        return values[self.places].tolist()  # type: ignore[no-any-return]


def select_first(n: int) -> StackRows:
    """Return the first n jobs."""
    return StackRows(range(n))


class RowSelector:
    """Selections of a stack's jobs.

    Their places are brought to the device once each: the same selections come back in each epoch.
    """

    def __init__(self, device: torch.device):
        self.device = device
        self._known: dict[tuple[int, ...], Tensor] = {}

    def index(self, places: Sequence[int]) -> Tensor:
        """Return places as a tensor on the device."""
        known = tuple(places)
        if known not in self._known:
            self._known[known] = torch.tensor(known, dtype=torch.int64, device=self.device)
        return self._known[known]

    def select(self, places: Sequence[int]) -> StackRows:
        """Return the jobs at these places."""
        return StackRows(places, self.index(places))
