"""What a run trains on and is graded on, as tensors on the device."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import torch
from torch import Tensor

from ..interface import Batch
from ..settings import Settings
from .augmentation import Augmentation, make_augmentation
from .examples import PartyExamples

_Value = TypeVar("_Value")


@dataclass(frozen=True, eq=False)
class Federated:
    """What training needs of a split.

    global_test is None where the data set has no test set of its own. noisy_test: the global test
    set with the noise of the party whose view of it is taken; None where that is not asked for.
    numbers: those that its parties have in the split, of `n_of_split`, where some are left out; ()
    where all are there. new_parties: what the parties hold that are held out, None for none.
    """

    train: PartyExamples
    val: PartyExamples
    test: PartyExamples
    global_test: PartyExamples | None
    counts: Tensor  # [P, K] int64 training examples of each class, on the host
    shape: tuple[int, ...]
    n_classes: int
    noisy_test: PartyExamples | None = None
    numbers: tuple[int, ...] = ()
    n_of_split: int = 0
    new_parties: "Federated | None" = None

    @property
    def n_parties(self) -> int:
        """Parties that train."""
        return len(self.counts)

    @property
    def device(self) -> torch.device:
        """Where the examples are."""
        return self.train.y.device

    @cached_property
    def sample(self) -> Batch:
        """Two training examples as in evaluation, on which a model is tried.

        The same twice where there is one alone, since batch norm needs two.
        """
        x = self.train.inputs(slice(0, 2))
        y = self.train.y[:2]
        if len(y) == 1:
            x = torch.cat([x, x])
            y = torch.cat([y, y])
        return Batch(x=x, y=y, mask=None, epoch=0, step=0)

    def find_number(self, party: int) -> int:
        """Return the number that a party which trains has in the split; 0 where all are pooled."""
        return self.numbers[party] if len(self.numbers) == self.n_parties else party

    def spread(self, values: Sequence[_Value]) -> list[_Value | None]:
        """Return values of the parties in a list of all that the split has, None for the others."""
        if not self.numbers:
            return list(values)
        of_split: list[_Value | None] = [None] * self.n_of_split
        for number, value in zip(self.numbers, values, strict=True):
            of_split[number] = value
        return of_split

    def prepare_for(self, settings: Settings, *, pooled: bool = False) -> "Federated":
        """Return the same as a run of these settings trains on it.

        Its examples are augmented in training where that is asked for. pooled: all parties train as
        one, each example as its party sees it; they are still evaluated one by one. UsageError
        where these examples cannot be augmented.
        """
        augment = make_augmentation(settings, self.shape)
        prepared = self if augment is None else self._augment(augment)
        if not pooled:
            return prepared
        train = replace(prepared.train, indptr=[0, len(self.train.y)])
        return replace(prepared, train=train, counts=self.counts.sum(0, keepdim=True))

    def _augment(self, augment: Augmentation) -> "Federated":
        """Return the same with this augmentation of all that parties hold."""
        train, val, test = (
            replace(part, prepare=replace(part.prepare, augment=augment))
            for part in (self.train, self.val, self.test)
        )
        new = self.new_parties and self.new_parties._augment(augment)
        return replace(self, train=train, val=val, test=test, new_parties=new)
