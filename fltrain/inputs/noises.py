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
    """seeds [P, 2] int64 (low, high word); std [P] float64; cells [P, 4] int64 top, bottom, left, right: noise only there."""

    seeds: Tensor
    std: Tensor
    cells: Tensor | None = None

    def __call__(self, x: Tensor, rows: Tensor, who: Tensor, epoch: int | Tensor) -> Tensor:
        """x [B, D] or [B, C, H, W] plus the noise of the examples `rows` [B] at the parties `who` [B].

        epoch: of the run, one for all or one for each [B]. 0: the noise of `niidpart.transform`.
        """
        z = normal(self.seeds[who], rows, epoch, prod(x.shape[1:])) * self.std[who].unsqueeze(1)
        if x.ndim == 4:  # the values of an image are counted as in the data set, channels last
            z = z.reshape(len(x), *x.shape[2:], x.shape[1]).permute(0, 3, 1, 2)
        return x + self._within_cells(z, who).to(x.dtype)

    def _within_cells(self, z: Tensor, who: Tensor) -> Tensor:
        """The noise z [B, C, H, W] of the parties `who` [B], 0 outside their cells; z itself where there are no cells."""
        if self.cells is None:
            return z
        top, bottom, left, right = self.cells[who].unsqueeze(2).unbind(1)  # [B, 1]
        row, column = (torch.arange(n, device=z.device) for n in z.shape[-2:])
        rows, columns = (row >= top) & (row < bottom), (column >= left) & (column < right)
        return z * (rows.unsqueeze(2) & columns.unsqueeze(1)).unsqueeze(1)


def make_noises(
    split: niidpart.FederatedSplit, shape: tuple[int, ...], device: torch.device, *, fixed: bool
) -> tuple[Noise, ...]:
    """The transforms that niidpart leaves to training, in order; fixed: those that it applies, too. shape: of one example, (C, H, W) or (D,)."""
    out = []
    for name, t in name_transforms(split.recipe):
        if not (fixed or t.params.get("fresh")):
            continue
        if t.name not in ("noise", "noise-space"):
            raise UsageError(
                f"the transform {t.name!r} is to be drawn on the device, which knows how for noise and noise-space only"
            )
        words = split.columns[f"{name}_seed"].astype(np.uint64)
        seeds = torch.from_numpy(
            np.stack([words & np.uint64(0xFFFFFFFF), words >> np.uint64(32)], axis=1).astype(
                np.int64
            )
        ).to(device)
        if t.name == "noise":
            out.append(
                Noise(
                    seeds,
                    torch.from_numpy(np.array(split.columns[f"{name}_std"], np.float64)).to(device),
                )
            )
        else:
            places = zip(
                split.columns[f"{name}_cell"].tolist(),
                split.columns[f"{name}_grid"].tolist(),
                strict=True,
            )
            cells = torch.tensor(
                [find_bounds(cell, grid, *shape[1:]) for cell, grid in places], device=device
            )
            out.append(
                Noise(
                    seeds,
                    torch.full(
                        (split.n_parties,), t.params["sigma"], dtype=torch.float64, device=device
                    ),
                    cells,
                )
            )
    return tuple(out)
