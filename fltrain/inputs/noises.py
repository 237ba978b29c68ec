"""The noise of a split on the device: drawn for a batch, by counter."""

from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from torch import Tensor

import niidpart
from niidpart.features.transforming import list_feature_steps
from niidpart.transforms.noise_space import find_bounds

from ..draws import normal
from .party_views import PartyView


@dataclass(frozen=True, eq=False)
class Noise:
    """The noise of one transform, for all parties.

    seeds: [P, 2] int64 (low, high word); std: [P] float64. is_fresh: drawn anew for each epoch; if
    not, niidpart applies it when the data is loaded. cells: [P, 4] int64 top, bottom, left, right,
    noise only there.
    """

    seeds: Tensor
    std: Tensor
    is_fresh: bool
    cells: Tensor | None = None

    def __call__(
        self,
        x: Tensor,
        rows: Tensor,
        who: Tensor,
        epoch: int | Tensor,
    ) -> Tensor:
        """Return x [B, D] or [B, C, H, W] with noise.

        Of the examples `rows` [B] at the parties `who` [B]. epoch: of the run, one for all or one
        for each [B]; 0: the noise of `niidpart.transform`.
        """
        n_values = prod(x.shape[1:])
        z = normal(self.seeds[who], rows, epoch, n_values)
        z = z * self.std[who].unsqueeze(1)
        if x.ndim == 4:  # the values of an image are counted as in the data set, channels last
            n, channels, *places = x.shape
            z = z.reshape(n, *places, channels).permute(0, 3, 1, 2)
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
) -> tuple[Noise | PartyView, ...]:
    """Return the transforms of features that niidpart leaves to training, in order.

    fixed: those that it applies, too. shape: of one example, (C, H, W) or (D,).
    """
    noises: list[Noise | PartyView] = []
    for name, record, options in list_feature_steps(split.recipe):
        is_fresh = bool(options.get("fresh"))
        if not (fixed or is_fresh):
            continue
        if "fresh" not in options:  # no noise that is drawn on the device
            noises.append(PartyView(split, name, record, options))
            continue
        cells = None
        if f"{name}_std" in split.columns:
            std = np.array(split.columns[f"{name}_std"], np.float64)
        else:
            std = np.full(split.n_parties, options["sigma"], np.float64)
            cells = _find_cells(split, name, shape).to(device)
        # 64-bit seeds as low and high word: torch has no uint64.
        words = split.columns[f"{name}_seed"].astype("<u8").view("<u4").reshape(-1, 2)
        noise = Noise(
            seeds=torch.from_numpy(words.astype(np.int64)).to(device),
            std=torch.from_numpy(std).to(device),
            is_fresh=is_fresh,
            cells=cells,
        )
        noises.append(noise)
    return tuple(noises)


def _find_cells(split: niidpart.FederatedSplit, name: str, shape: tuple[int, ...]) -> Tensor:
    """Return where each party's noise is, [P, 4]. name: of the transform in the columns."""
    numbers = split.columns[f"{name}_cell"].tolist()
    grids = split.columns[f"{name}_grid"].tolist()
    height, width = shape[1:]
    places = zip(numbers, grids, strict=True)
    return torch.tensor([find_bounds(cell, grid, height, width) for cell, grid in places])
