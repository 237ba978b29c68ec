"""What a rule of cohorts knows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor


@dataclass(frozen=True, eq=False)
class KnownParties:
    """What is known of the parties before training, on the host.

    Attributes
    ----------
    counts : Tensor
        [P, K] int64, training examples of each class.
    n_held_out : int
        How many parties the split has besides, which never train.
    """

    counts: Tensor
    n_held_out: int = 0

    @property
    def n(self) -> Tensor:
        """[P] int64, training examples."""
        return self.counts.sum(1)

    def __len__(self) -> int:
        return len(self.counts)

    def describe_number(self) -> str:
        """Return how many parties there are, in words, and that some are held out.

        Examples
        --------
        >>> import torch
        >>> KnownParties(torch.ones(8, 3), n_held_out=2).describe_number()
        '8 parties beside those that --new-parties holds out'
        """
        beside = " beside those that --new-parties holds out" if self.n_held_out else ""
        return f"{len(self)} parties{beside}"


class CohortDraw(NamedTuple):
    """The draw of one round.

    Attributes
    ----------
    size : int
        How many parties are wanted, at most as many as there are.
    key : int
        Of the seed and the round.
    measure_losses : callable
        (parties) -> the mean loss of what each of them is served, on its training examples.
    """

    size: int
    key: int
    measure_losses: Callable[[Sequence[int]], list[float]]
