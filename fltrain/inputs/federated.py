"""A split and its data set as tensors on the device."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import niidpart
from niidpart.data import Data, Features
from niidpart.data.of_split import open_data, source_faults
from niidpart.errors import UsageError

from ..settings import Settings
from .augmentation import Augmentation, make_augmentation
from .noises import Noise, make_noises
from .normalisation import Normalisation, make_normalisation

_DEFAULT = Settings()


@dataclass(frozen=True, eq=False)
class Preparation:
    """What is done to a batch on the device, in this order. augment: in training alone; noise: drawn anew for each epoch."""

    augment: Augmentation | None = None
    noise: tuple[Noise, ...] = ()
    normalise: Normalisation | None = None

    def __call__(self, x: Tensor, rows: Tensor, party: Tensor, epoch: int | Tensor) -> Tensor:
        """x [B, ...] float32 of the examples `rows` [B] of `party` [B], as the model gets them. epoch: one for all, or [B], one for each."""
        if self.augment is not None:
            if isinstance(epoch, Tensor):
                x = torch.where(
                    (epoch > 0).view(-1, 1, 1, 1), self.augment(x, rows, party, epoch), x
                )
            elif epoch > 0:
                x = self.augment(x, rows, party, epoch)
        for noise in self.noise:
            x = noise(x, rows, party, epoch)
        return x if self.normalise is None else self.normalise(x)


@dataclass(frozen=True, eq=False)
class PartyExamples:
    """Examples in the order of their parties. x: [n, ...] uint8 or float32; y [n] int64; party p has indptr[p]:indptr[p+1].

    rows: [n] their rows in the data set; party: [n] whose transforms they carry. prepare: what is done to each batch of them.
    """

    x: Tensor
    y: Tensor
    indptr: list[int]
    rows: Tensor
    party: Tensor
    prepare: Preparation = Preparation()

    def inputs(self, at: Tensor | slice, epoch: int | Tensor = 0) -> Tensor:
        """[B, ...] float32 as the model gets them. epoch: of the run, from 1 in training (which draw), 0 in evaluation; [B]: one for each."""
        x = self.x[at]
        x = x.float().div_(255) if x.dtype == torch.uint8 else x
        return self.prepare(x, self.rows[at], self.party[at], epoch)

    def seen_by(self, party: int) -> "PartyExamples":
        """The same examples with the transforms of one party. Nothing of x is copied."""
        return replace(self, party=torch.full_like(self.party, party))

    def size(self, party: int) -> int:
        return self.indptr[party + 1] - self.indptr[party]


@dataclass(frozen=True, eq=False)
class Federated:
    """What training needs. global_test is None where the data set has no test set of its own.

    noisy_test: the global test set with the noise of the party that it is `seen_by`; None where that is not asked for.
    """

    train: PartyExamples
    val: PartyExamples
    test: PartyExamples
    global_test: PartyExamples | None
    counts: Tensor  # [P, K] int64 training examples of each class, on the host
    shape: tuple[int, ...]
    n_classes: int
    noisy_test: PartyExamples | None = None

    @property
    def n_parties(self) -> int:
        """Parties that train."""
        return len(self.counts)

    def pooled(self) -> "Federated":
        """All parties train as one, each example with its party's transforms; they are still evaluated one by one."""
        return replace(
            self,
            train=replace(self.train, indptr=[0, len(self.train.y)]),
            counts=self.counts.sum(0, keepdim=True),
        )


def open_split_data(
    split: niidpart.FederatedSplit, data: Data | None, data_root: str | Path | None
) -> Data:
    """The data of the split: the one handed over, or from where the file says it is. ValueError if it is not what the split was made for."""
    if data is None:
        data = open_data(split, data_root)
    if faults := source_faults(split, data):
        raise UsageError(f"this is not the data of the split: {faults[0].message}")
    if data.features is None:
        raise UsageError("the data has labels but no features; there is nothing to train on")
    return data


def load_federated(
    split: niidpart.FederatedSplit, data: Data, device: torch.device, settings: Settings = _DEFAULT
) -> Federated:
    """Everything that the split holds, gathered once, in the order of the parties. settings: what is done to each batch."""
    if split.test.n == 0 and (data.test_labels is None or data.test_features is None):
        raise UsageError(
            "there is no test set anywhere; make the split with a part for it: niidpart make ... --test 0.2"
        )
    if data.features is None:
        raise UsageError("the data has labels but no features; there is nothing to train on")
    parts = {
        name: _part(split, name, data, data.features, device) for name in ("train", "val", "test")
    }
    shape = tuple(parts["train"].x.shape[1:])
    normalise = make_normalisation(settings.normalise, parts["train"].x)
    prepare = Preparation(
        make_augmentation(settings, shape),
        make_noises(split, shape, device, fixed=False),
        normalise,
    )
    test = _global_test(data, device, Preparation(normalise=normalise))
    return Federated(
        **{name: replace(part, prepare=prepare) for name, part in parts.items()},
        global_test=test,
        counts=torch.from_numpy(split.train.counts.astype(np.int64)),
        shape=shape,
        n_classes=len(data.class_names),
        noisy_test=_noisy(split, test, len(data.labels)) if settings.noisy_test else None,
    )


def _part(
    split: niidpart.FederatedSplit, name: str, data: Data, features: Features, device: torch.device
) -> PartyExamples:
    part = split.parts[name]
    rows = part.indices.astype(np.int64)
    x = features(rows)
    if split.recipe.transforms and len(rows):
        x = np.concatenate(
            [
                niidpart.transform(split, x[a:b], p, rows[a:b])
                for p, (a, b) in enumerate(zip(part.indptr, part.indptr[1:], strict=False))
            ]
        )
    return PartyExamples(
        x=put_channels_first(x).to(device),
        y=torch.from_numpy(data.labels[rows]).to(device),
        indptr=part.indptr.tolist(),
        rows=torch.from_numpy(rows).to(device),
        party=torch.from_numpy(np.repeat(np.arange(split.n_parties), part.sizes)).to(device),
    )


def _global_test(data: Data, device: torch.device, prepare: Preparation) -> PartyExamples | None:
    if data.test_labels is None or data.test_features is None:
        return None
    n = len(data.test_labels)
    rows = torch.arange(n, device=device)
    x = put_channels_first(data.test_features(slice(None))).to(device)
    return PartyExamples(
        x,
        torch.from_numpy(data.test_labels).to(device),
        [0, n],
        rows,
        torch.zeros_like(rows),
        prepare,
    )


def _noisy(split: niidpart.FederatedSplit, test: PartyExamples | None, n: int) -> PartyExamples:
    """The global test set as a party's noise would show it. Its rows are numbered from n, after those of the data: no noise of training again."""
    if test is None:
        raise UsageError(
            "noisy-test needs a test set of the data set's own, and there is none; the parties' own test parts carry their noise anyway"
        )
    noise = make_noises(split, tuple(test.x.shape[1:]), test.x.device, fixed=True)
    if not noise:
        raise UsageError(
            "noisy-test needs a split with noise, and this one has none; make it with --transform noise, or leave --noisy-test away"
        )
    return replace(test, rows=test.rows + n, prepare=replace(test.prepare, noise=noise))


def put_channels_first(x: np.ndarray) -> Tensor:
    """[n, C, H, W] of images, [n, D] of tables; uint8 or float32."""
    x = x if x.dtype == np.uint8 else x.astype(np.float32, copy=False)
    if x.ndim == 3:
        x = x[:, None]
    elif x.ndim == 4:
        x = x.transpose(0, 3, 1, 2)
    return torch.from_numpy(np.array(x, order="C"))
