"""What a compressor draws by."""

from typing import NamedTuple

import torch
from torch import Tensor

from ..draws import uniform

_COMPRESSION = 0xC0A5  # sets these draws apart from others of a job's key


class UpdateDraw(NamedTuple):
    """The draws of one block of a job's update.

    Attributes
    ----------
    key : int or Tensor
        Of the job: its seed, round, party and model.
    block : int
        The number of the block, from 0.
    """

    key: int | Tensor
    block: int

    def draw_uniform(self, n: int, device: torch.device) -> Tensor:
        """Return n numbers uniform on [0, 1), float64, the same whatever else is drawn."""
        drawn = uniform(self.key ^ _COMPRESSION, n, device, at=(self.block, 0))
        return drawn.double()
