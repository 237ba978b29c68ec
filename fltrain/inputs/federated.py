"""A split and its data set as tensors on the device."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

import niidpart
from niidpart.data import Data, Features
from niidpart.errors import UsageError
from niidpart.splits.part import Part

from ..interface import Batch
from ..settings import Settings
from .augmentation import Augmentation
from .examples import PartyExamples, Preparation
from .gathering import copy_features, hold_features, put_channels_first, share_features
from .noises import make_noises
from .normalisation import Normalisation, make_normalisation

_DEFAULT = Settings()
_Value = TypeVar("_Value")


@dataclass(frozen=True, eq=False)
class Federated:
    """What training needs of a split.

    global_test is None where the data set has no test set of its own. noisy_test: the global test
    set with the noise of the party whose view of it is taken; None where that is not asked for.
    numbers: those that its parties have in the split, of `n_of_split`, where some are left out; ()
    where all are there.
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

    def augment(self, augmentation: Augmentation | None) -> "Federated":
        """Return the same, whose examples are augmented in training; not where it is None."""
        train, val, test = (
            replace(part, prepare=replace(part.prepare, augment=augmentation))
            for part in (self.train, self.val, self.test)
        )
        return replace(self, train=train, val=val, test=test)

    def normalise(self, normalise: Normalisation | None) -> "Federated":
        """Return the same with another normalisation of all examples."""

        def prepare(part: PartyExamples) -> PartyExamples:
            return replace(part, prepare=replace(part.prepare, normalise=normalise))

        return replace(
            self,
            train=prepare(self.train),
            val=prepare(self.val),
            test=prepare(self.test),
            global_test=self.global_test and prepare(self.global_test),
            noisy_test=self.noisy_test and prepare(self.noisy_test),
        )

    def pool(self) -> "Federated":
        """Return the same with all parties training as one, each example as its party sees it.

        They are still evaluated one by one.
        """
        train = replace(self.train, indptr=[0, len(self.train.y)])
        return replace(self, train=train, counts=self.counts.sum(0, keepdim=True))


def load_federated(
    split: niidpart.FederatedSplit, data: Data, device: torch.device, settings: Settings = _DEFAULT
) -> Federated:
    """Return everything that the split holds, gathered once, in the order of the parties.

    settings: what is done to each batch, augmentation apart, which `Federated.augment` adds.
    """
    features = _require_features(data)
    _require_test_set(split, data, settings)
    shared = None
    if _can_share(split):
        shared = share_features(features, len(data.labels), device)
    train, val, test = (
        _gather_part(
            split=split, part=part, data=data, features=features, shared=shared, device=device
        )
        for part in split.parts.values()
    )
    global_test = _gather_global_test(data, device)
    shape = tuple(train.x.shape[1:])
    normalise = make_normalisation(settings.normalise, train.x, train.places)
    noises = make_noises(split, shape, device, fixed=settings.noisy_test)
    fresh = tuple(noise for noise in noises if noise.is_fresh)
    of_party = Preparation(noise=fresh, normalise=normalise)
    noisy_test = None
    if global_test is not None:
        global_test = replace(global_test, prepare=Preparation(normalise=normalise))
        if settings.noisy_test:
            # Its rows are numbered after those of the data: no noise of training again.
            rows = global_test.rows + len(data.labels)
            shown = Preparation(noise=noises, normalise=normalise)
            noisy_test = replace(global_test, rows=rows, prepare=shown)
    return Federated(
        train=replace(train, prepare=of_party),
        val=replace(val, prepare=of_party),
        test=replace(test, prepare=of_party),
        global_test=global_test,
        counts=torch.from_numpy(split.train.counts.astype(np.int64)),
        shape=shape,
        n_classes=len(data.class_names),
        noisy_test=noisy_test,
    )


def _require_features(data: Data) -> Features:
    if data.features is None:
        raise UsageError("the data has labels but no features; there is nothing to train on")
    return data.features


def _require_test_set(split: niidpart.FederatedSplit, data: Data, settings: Settings) -> None:
    """Raise UsageError where nothing can be evaluated, or not as the settings ask for."""
    is_global = data.test_labels is not None and data.test_features is not None
    if split.test.n == 0 and not is_global:
        raise UsageError(
            "there is no test set anywhere; make the split with a part for it: "
            "niidpart make ... --test 0.2"
        )
    if settings.noisy_test and not is_global:
        raise UsageError(
            "noisy-test needs a test set of the data set's own, and there is none; "
            "the parties' own test parts carry their noise anyway"
        )
    if settings.noisy_test and not split.recipe.transforms:
        raise UsageError(
            "noisy-test needs a split with noise, and this one has none; "
            "make it with --transform noise, or leave --noisy-test away"
        )


def _can_share(split: niidpart.FederatedSplit) -> bool:
    """Return whether parties can read the rows of the data set itself, most of which they hold."""
    n_dealt = sum(len(part.indices) for part in split.parts.values())
    return not split.recipe.transforms and 2 * n_dealt >= split.source.n


def _gather_part(
    split: niidpart.FederatedSplit,
    part: Part,
    data: Data,
    features: Features,
    shared: Tensor | None,
    device: torch.device,
) -> PartyExamples:
    """Return one part of the split, with the transforms that are the same in every epoch.

    shared: the features of all rows, where parties read those; None where they have copies.
    """
    on_host = part.indices.astype(np.int64)
    rows = torch.from_numpy(on_host).to(device)
    if split.recipe.transforms and len(rows):
        x = _transform_rows(split, part, features, device)
    elif shared is None:
        x = copy_features(features, on_host, device)
    else:
        x = shared
    party = np.repeat(np.arange(split.n_parties), part.sizes)
    return PartyExamples(
        x=x,
        y=torch.from_numpy(data.labels[on_host]).to(device),
        indptr=part.indptr.tolist(),
        rows=rows,
        party=torch.from_numpy(party).to(device),
        places=None if shared is None else rows,
    )


def _transform_rows(
    split: niidpart.FederatedSplit, part: Part, features: Features, device: torch.device
) -> Tensor:
    """Return the features of a part as its parties see them."""
    rows = part.indices.astype(np.int64)
    x = features(rows)
    seen: Tensor | None = None
    for party, size in enumerate(part.sizes.tolist()):
        start = int(part.indptr[party])
        mine = slice(start, start + size)
        its = put_channels_first(niidpart.transform(split, x[mine], party, rows[mine]))
        if seen is None:
            seen = torch.empty((len(rows), *its.shape[1:]), dtype=its.dtype, device=device)
        seen[mine] = its
    assert seen is not None  # a split has a party
    return seen


def _gather_global_test(data: Data, device: torch.device) -> PartyExamples | None:
    """Return the data set's own test set; None where it has none."""
    if data.test_labels is None or data.test_features is None:
        return None
    n = len(data.test_labels)
    rows = torch.arange(n, device=device)
    return PartyExamples(
        x=hold_features(data.test_features(slice(None)), device),
        y=torch.from_numpy(data.test_labels).to(device),
        indptr=[0, n],
        rows=rows,
        party=torch.zeros_like(rows),
    )
