"""The examples of parties as tensors, and what is done to a batch of them."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from .augmentation import Augmentation
from .noises import Noise
from .normalisation import Normalisation
from .party_views import PartyView

_PIECE = 1 << 20  # bytes gathered at a time


@dataclass(frozen=True, eq=False)
class Preparation:
    """What is done to a batch on the device, in this order.

    augment: in training alone. noise: drawn afresh for each epoch; other transforms of the split,
    where x has them not.
    """

    augment: Augmentation | None = None
    noise: tuple[Noise | PartyView, ...] = ()
    normalise: Normalisation | None = None

    def __call__(
        self,
        x: Tensor,
        rows: Tensor,
        party: Tensor,
        epoch: int | Tensor,
    ) -> Tensor:
        """Return x [B, ...] float32 as the model gets it.

        rows, party: [B], of the examples. epoch: of the run, one for all, or [B], one for each; 0
        where nothing is trained.
        """
        if self.augment is not None:
            x = self._augment_in_training(self.augment, x, rows, party, epoch)
        for noise in self.noise:
            x = noise(x, rows, party, epoch)
        return x if self.normalise is None else self.normalise(x)

    @staticmethod
    def _augment_in_training(
        augment: Augmentation,
        x: Tensor,
        rows: Tensor,
        party: Tensor,
        epoch: int | Tensor,
    ) -> Tensor:
        if isinstance(epoch, Tensor):
            is_training = (epoch > 0).view(-1, 1, 1, 1)
            return torch.where(is_training, augment(x, rows, party, epoch), x)
        return augment(x, rows, party, epoch) if epoch > 0 else x


@dataclass(frozen=True, eq=False)
class PartyExamples:
    """Examples in the order of their parties.

    y: [n] int64; party p has indptr[p]:indptr[p+1]. rows: [n] those in the data set. party: [n]
    whose transforms they carry. prepare: what is done to each batch. x: [n, ...] uint8 or float32,
    in the same order; where there are places [n], x is a large data set as a whole, perhaps not
    contiguous, and these are the places of the examples in it.
    """

    x: Tensor
    y: Tensor
    indptr: list[int]
    rows: Tensor
    party: Tensor
    prepare: Preparation = Preparation()
    places: Tensor | None = None

    def take(self, at: Tensor | slice) -> Tensor:
        """Return the features of examples as they are stored, contiguous."""
        if self.places is None:
            return self.x[at].contiguous()
        rows = self.places[at]
        if self.x.is_contiguous() or rows.ndim != 1:
            return self.x[rows].contiguous()
        return _gather(self.x, rows)

    @cached_property
    def labels_in_place(self) -> Tensor:
        """The labels [len(x)] where the features of their examples are in x; 0 for all others."""
        if self.places is None:
            return self.y
        labels = torch.zeros(len(self.x), dtype=self.y.dtype, device=self.y.device)
        labels[self.places] = self.y
        return labels

    def inputs(self, at: Tensor | slice, epoch: int | Tensor = 0) -> Tensor:
        """Return examples as the model gets them, [B, ...] float32.

        epoch: of the run, from 1 in training (which draw), 0 in evaluation; [B]: one for each.
        """
        x = self.take(at)
        if x.dtype == torch.uint8:
            x = x.float().div_(255)
        rows = self.rows[at]
        party = self.party[at]
        return self.prepare(x, rows, party, epoch)

    def view_as(self, party: int) -> "PartyExamples":
        """Return the same examples with the transforms of one party. Nothing of x is copied."""
        return replace(self, party=torch.full_like(self.party, party))

    def size(self, party: int) -> int:
        """Return how many examples a party has."""
        return self.indptr[party + 1] - self.indptr[party]


def _gather(x: Tensor, rows: Tensor) -> Tensor:
    """Return rows [n] of an array that is not contiguous, contiguous.

    A piece at a time: what torch gathers has the strides of x, so that all of it would be in memory
    twice, and leaves the cache before it is laid out anew.
    """
    gathered = x.new_empty((len(rows), *x.shape[1:]))
    at_once = max(1, _PIECE // max(1, x[:1].nbytes))
    for start in range(0, len(rows), at_once):
        piece = slice(start, start + at_once)
        gathered[piece] = x[rows[piece]]
    return gathered
