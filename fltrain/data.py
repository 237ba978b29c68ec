"""A split and its data set as tensors on the device."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import niidpart
from niidpart.data import Data, Features
from niidpart.transformed import named_transforms
from niidpart.transforms.noise_space import bounds
from niidpart.verify import matches, open_data

from .draws import normal


@dataclass(frozen=True, eq=False)
class Fresh:
    """Noise drawn anew each epoch. seeds [P, 2] int64 (low, high word); std [P] float64; cells [P, 4] int64 top, bottom, left, right: only there."""

    seeds: Tensor
    std: Tensor
    cells: Tensor | None = None

    def within_cells(self, z: Tensor, who: Tensor) -> Tensor:
        """The noise z [B, C, H, W] of the parties `who` [B], 0 outside their cells; z itself where there are no cells."""
        if self.cells is None:
            return z
        top, bottom, left, right = self.cells[who].unsqueeze(2).unbind(1)  # [B, 1]
        row, column = (torch.arange(n, device=z.device) for n in z.shape[-2:])
        rows, columns = (row >= top) & (row < bottom), (column >= left) & (column < right)
        return z * (rows.unsqueeze(2) & columns.unsqueeze(1)).unsqueeze(1)


@dataclass(frozen=True, eq=False)
class Examples:
    """Examples in the order of their parties. x: [n, ...] uint8 or float32; y [n] int64; party p has indptr[p]:indptr[p+1].

    rows: [n] their rows in the data set; party: [n] whose transforms they carry. fresh: what is still to be added in training.
    """

    x: Tensor
    y: Tensor
    indptr: list[int]
    rows: Tensor
    party: Tensor
    fresh: tuple[Fresh, ...] = ()

    def inputs(self, at: Tensor | slice, epoch: int = 0) -> Tensor:
        """[B, ...] float32 as the model gets them. epoch: which draw of fresh noise; from 1 in training, 0 in evaluation."""
        x = self.x[at]
        x = x.float().div_(255) if x.dtype == torch.uint8 else x
        for noise in self.fresh:
            who = self.party[at]
            z = normal(noise.seeds[who], self.rows[at], epoch, x[0].numel()) * noise.std[who].unsqueeze(1)
            x = x + noise.within_cells(z.reshape(x.shape), who).to(x.dtype)
        return x

    def size(self, party: int) -> int:
        return self.indptr[party + 1] - self.indptr[party]


@dataclass(frozen=True, eq=False)
class Federated:
    """What training needs. global_test is None where the data set has no test set of its own."""

    train: Examples
    val: Examples
    test: Examples
    global_test: Examples | None
    counts: Tensor  # [P, K] int64 training examples of each class, on the host
    shape: tuple[int, ...]
    n_classes: int

    @property
    def n_parties(self) -> int:
        """Parties that train."""
        return len(self.counts)

    def pooled(self) -> "Federated":
        """All parties train as one, each example with its party's transforms; they are still evaluated one by one."""
        return replace(self, train=replace(self.train, indptr=[0, len(self.train.y)]), counts=self.counts.sum(0, keepdim=True))


def open_for(split: niidpart.FederatedSplit, data: Data | None, data_root: str | Path | None) -> Data:
    """The data of the split: the one handed over, or from where the file says it is. ValueError if it is not what the split was made for."""
    if data is None:
        data = open_data(split, data_root)
    if faults := matches(split, data):
        raise ValueError(f"this is not the data of the split: {faults[0].message}")
    if data.features is None:
        raise ValueError("the data has labels but no features; there is nothing to train on")
    return data


def to_device(split: niidpart.FederatedSplit, data: Data, device: torch.device) -> Federated:
    """Everything that the split holds, gathered once, in the order of the parties."""
    if split.test.n == 0 and (data.test_labels is None or data.test_features is None):
        raise ValueError("there is no test set anywhere; make the split with a part for it: niidpart make ... --test 0.2")
    if data.features is None:
        raise ValueError("the data has labels but no features; there is nothing to train on")
    parts = {name: _part(split, name, data, data.features, device) for name in ("train", "val", "test")}
    return Federated(
        **parts,
        global_test=_global_test(data, device),
        counts=torch.from_numpy(split.train.counts.astype(np.int64)),
        shape=tuple(parts["train"].x.shape[1:]),
        n_classes=len(data.class_names),
    )


def _part(split: niidpart.FederatedSplit, name: str, data: Data, features: Features, device: torch.device) -> Examples:
    part = split.parts[name]
    rows = part.indices.astype(np.int64)
    x = features(rows)
    if split.recipe.transforms and len(rows):
        x = np.concatenate(
            [niidpart.transform(split, x[a:b], p, rows[a:b]) for p, (a, b) in enumerate(zip(part.indptr, part.indptr[1:], strict=False))]
        )
    return Examples(
        x=_channels_first(x).to(device),
        y=torch.from_numpy(data.labels[rows]).to(device),
        indptr=part.indptr.tolist(),
        rows=torch.from_numpy(rows).to(device),
        party=torch.from_numpy(np.repeat(np.arange(split.n_parties), part.sizes)).to(device),
        fresh=_fresh(split, x.shape, device),
    )


def _fresh(split: niidpart.FederatedSplit, shape: tuple[int, ...], device: torch.device) -> tuple[Fresh, ...]:
    """The transforms that niidpart leaves to training, for features of `shape` as the source gives them."""
    out = []
    for name, t in named_transforms(split.recipe):
        if not t.params.get("fresh"):
            continue
        words = split.columns[f"{name}_seed"].astype(np.uint64)
        seeds = torch.from_numpy(np.stack([words & np.uint64(0xFFFFFFFF), words >> np.uint64(32)], axis=1).astype(np.int64)).to(device)
        if t.name == "noise":
            out.append(Fresh(seeds, torch.from_numpy(np.array(split.columns[f"{name}_std"], np.float64)).to(device)))
        elif t.name == "noise-space":
            places = zip(split.columns[f"{name}_cell"].tolist(), split.columns[f"{name}_grid"].tolist(), strict=True)
            cells = torch.tensor([bounds(cell, grid, *shape[1:3]) for cell, grid in places], device=device)
            out.append(Fresh(seeds, torch.full((split.n_parties,), t.params["sigma"], dtype=torch.float64, device=device), cells))
        else:
            raise ValueError(f"the transform {t.name!r} is to be drawn anew in training, which knows how for noise and noise-space only")
    return tuple(out)


def _global_test(data: Data, device: torch.device) -> Examples | None:
    if data.test_labels is None or data.test_features is None:
        return None
    n = len(data.test_labels)
    rows = torch.arange(n, device=device)
    x = _channels_first(data.test_features(slice(None))).to(device)
    return Examples(x, torch.from_numpy(data.test_labels).to(device), [0, n], rows, torch.zeros_like(rows))


def _channels_first(x: np.ndarray) -> Tensor:
    """[n, C, H, W] of images, [n, D] of tables; uint8 or float32."""
    x = x if x.dtype == np.uint8 else x.astype(np.float32, copy=False)
    if x.ndim == 3:
        x = x[:, None]
    elif x.ndim == 4:
        x = x.transpose(0, 3, 1, 2)
    return torch.from_numpy(np.array(x, order="C"))
