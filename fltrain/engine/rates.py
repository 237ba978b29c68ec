"""The learning rate of each step of some jobs."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..interface import Work
from ..settings import Settings


class Rates:
    """The learning rate of each step: that of the round, or one of its own.

    settings, steps: of each job, the longest first. work: of them all, with their rates in the
    round: one number, or [J].
    """

    def __init__(
        self,
        settings: Sequence[Settings],
        steps: Sequence[int],
        *,
        work: Work,
        round: int,
        device: torch.device,
    ):
        self._of_round = work.lr
        self._n_steps = max(steps)
        self._device = device
        self._one: list[float] = []  # of each step, where all jobs have the same
        self._each: Tensor | None = None  # [steps, J] where they differ
        if settings[0].lr_over == "rounds":
            return
        kinds = list(dict.fromkeys(zip(settings, steps, strict=True)))
        lists = {kind: list_rates(*kind, round) for kind in kinds}
        if len(kinds) == 1:
            self._one = lists[kinds[0]]
            return
        longest = max(steps)
        columns = []
        for kind in zip(settings, steps, strict=True):
            rates = lists[kind]
            # a job that has ended is not stepped: any number will do
            columns.append(rates + [0.0] * (longest - len(rates)))
        self._each = torch.tensor(columns, dtype=torch.float64, device=device).T.contiguous()

    def at(self, step: int, n: int) -> float | Tensor:
        """Return the rate of a step, or the rates [n] of the first n jobs."""
        if self._each is not None:
            return self._each[step, :n]
        if self._one:
            return self._one[step]
        of_round = self._of_round
        return of_round[:n] if isinstance(of_round, Tensor) else of_round

    def tabulate(self) -> Tensor:
        """Return the rates of all steps, [S, J], or [S, 1] where they are one for all jobs."""
        if self._each is not None:
            return self._each
        if self._one:
            return torch.tensor(self._one, dtype=torch.float64, device=self._device).unsqueeze(1)
        rates = torch.as_tensor(self._of_round, dtype=torch.float64, device=self._device)
        return rates.reshape(1, -1).expand(self._n_steps, -1)


def list_rates(settings: Settings, steps: int, round: int) -> list[float]:
    """Return the learning rates of the steps of a job in a round."""
    if settings.lr_over == "rounds":
        return [settings.lr_at(round)] * steps
    return [settings.lr_at(round, step / steps) for step in range(steps)]
