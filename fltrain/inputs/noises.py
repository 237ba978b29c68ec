"""The noise of a split on the device: drawn for a batch, by counter."""

from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from torch import Tensor

import niidpart
from niidpart.errors import UsageError
from niidpart.features.transforming import name_transforms
from niidpart.transforms.noise_space import find_bounds

from ..draws import normal


@dataclass(frozen=True, eq=False)
class Noise:
    """The noise of one transform, for all parties.

    seeds: [P, 2] int64 (low, high word); std: [P] float64; cells: [P, 4] int64 top, bottom, left,
    right, noise only there.
    """

    seeds: Tensor
    std: Tensor
    cells: Tensor | None = None

    def __call__(self, x: Tensor, rows: Tensor, who: Tensor, epoch: int | Tensor) -> Tensor:
        """Return x [B, D] or [B, C, H, W] with noise.

        Of the examples `rows` [B] at the parties `who` [B]. epoch: of the run, one for all or one
        for each [B]; 0: the noise of `niidpart.transform`.
        """
        n_values = prod(x.shape[1:])
        z = normal(self.seeds[who], rows, epoch, n_values)
        z = z * self.std[who].unsqueeze(1)
        if x.ndim == 4:  # the values of an image are counted as in the data set, channels last
            z = z.reshape(len(x), *x.shape[2:], x.shape[1]).permute(0, 3, 1, 2)
        return x + self._keep_in_cells(z, who).to(x.dtype)

    def _keep_in_cells(self, z: Tensor, who: Tensor) -> Tensor:
        """Return the noise z [B, C, H, W], 0 outside the cells of the parties `who` [B]."""
        if self.cells is None:
            return z
        top, bottom, left, right = self.cells[who].unsqueeze(2).unbind(1)  # [B, 1]
        row, column = (torch.arange(n, device=z.device) for n in z.shape[-2:])
        rows = (row >= top) & (row < bottom)  # [B, H]
        columns = (column >= left) & (column < right)  # [B, W]
        inside = rows.unsqueeze(2) & columns.unsqueeze(1)
        return z * inside.unsqueeze(1)


def make_noises(
    split: niidpart.FederatedSplit, shape: tuple[int, ...], device: torch.device, *, fixed: bool
) -> tuple[Noise, ...]:
    """Return the transforms that niidpart leaves to training, in order.

    fixed: those that it applies, too. shape: of one example, (C, H, W) or (D,).
    """
    noises = []
    for name, transform in name_transforms(split.recipe):
        if not (fixed or transform.params.get("fresh")):
            continue
        seeds = _split_words(split.columns[f"{name}_seed"]).to(device)
        if transform.name == "noise":
            std = np.array(split.columns[f"{name}_std"], np.float64)
            noises.append(Noise(seeds, torch.from_numpy(std).to(device)))
        elif transform.name == "noise-space":
            sigma = transform.params["sigma"]
            std_of_all = torch.full((split.n_parties,), sigma, dtype=torch.float64, device=device)
            places = zip(
                split.columns[f"{name}_cell"].tolist(),
                split.columns[f"{name}_grid"].tolist(),
                strict=True,
            )
            cells = [find_bounds(cell, grid, *shape[1:]) for cell, grid in places]
            noises.append(Noise(seeds, std_of_all, torch.tensor(cells, device=device)))
        else:
            raise UsageError(
                f"the transform {transform.name!r} is to be drawn on the device, "
                "which knows how for noise and noise-space only"
            )
    return tuple(noises)


def _split_words(seeds: np.ndarray) -> Tensor:
    """Return 64-bit seeds [P] as [P, 2] int64, low and high word: torch has no uint64."""
    seeds = seeds.astype(np.uint64)
    words = np.stack([seeds & np.uint64(0xFFFFFFFF), seeds >> np.uint64(32)], axis=1)
    return torch.from_numpy(words.astype(np.int64))
