"""Transforms of a split that niidpart applies, on batches: for examples that are no party's."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import niidpart
from niidpart.transforms import FeatureTransform

from .device_features import put_channels_first


@dataclass(frozen=True, eq=False)
class PartyView:
    """A transform of features that no epoch changes, for all parties.

    name: of the transform in the columns. It is computed on the host, as niidpart does.
    """

    split: niidpart.FederatedSplit
    name: str
    record: FeatureTransform
    options: Mapping[str, Any]
    is_fresh: bool = False

    def __call__(self, x: Tensor, rows: Tensor, who: Tensor, epoch: int | Tensor) -> Tensor:
        """Return x [B, D] or [B, C, H, W] as the parties `who` [B] see the examples `rows` [B]."""
        seen = torch.empty_like(x, memory_format=torch.contiguous_format)
        for party in sorted(set(who.tolist())):
            its = who == party
            seen[its] = self._show(x[its], rows[its], party).to(x)
        return seen

    def _show(self, x: Tensor, rows: Tensor, party: int) -> Tensor:
        column = {
            key: self.split.columns[f"{self.name}_{key}"][party] for key in self.record.columns
        }
        if x.ndim == 4:  # as the data set has it: channels last, none where there is one
            x = x[:, 0] if x.shape[1] == 1 else x.permute(0, 2, 3, 1)
        plain = x.cpu().contiguous().numpy()
        return put_channels_first(
            self.record.apply(plain, rows.cpu().numpy(), column, self.options)
        )
