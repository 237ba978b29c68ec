"""Random crops, flips and rotations of training images, drawn for each example by counter."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from niidpart.errors import UsageError

from ..draws import augmentation, key
from ..settings import Settings


@dataclass(frozen=True, eq=False)
class Augmentation:
    """A crop of the old size out of the picture padded by `crop` pixels, then a flip with chance 1/2, then a rotation by up to `rotate` degrees.

    What comes into the picture is 0; with pad="reflect", a crop mirrors the picture at its border pixels instead. key: of all draws of the run.
    """

    key: int
    crop: int = 0
    pad: Literal["zero", "reflect"] = "zero"
    flip: bool = False
    rotate: float = 0.0

    def __call__(self, x: Tensor, rows: Tensor, party: Tensor, epoch: int | Tensor) -> Tensor:
        """x [B, C, H, W] of the examples `rows` [B] of the parties `party` [B], for an epoch of the run, or one each [B]; of the same shape."""
        height, width = x.shape[-2:]
        top, left, flipped, turn = (
            u.view(-1, 1, 1) for u in augmentation(self.key, rows, party, epoch)
        )
        r = torch.arange(height, device=x.device).view(1, -1, 1)
        c = torch.arange(width, device=x.device).view(1, 1, -1)
        inside = torch.ones((1, 1, 1), dtype=torch.bool, device=x.device)
        # From each pixel of the result back to where it comes from: the last operation first. One gather then does them all.
        if self.rotate:
            r, c = find_sources(
                r, c, height, width, (turn.double() * 2.0**-31 + 2.0**-32 - 1) * self.rotate
            )
            inside = _is_in(r, height) & _is_in(c, width)
        if self.flip:
            c = torch.where(flipped >= 1 << 31, width - 1 - c, c)
        if self.crop:
            r, c = (
                at + (word * (2 * self.crop + 1) >> 32) - self.crop
                for at, word in ((r, top), (c, left))
            )
            if self.pad == "reflect":
                r, c = _mirrored(r, height), _mirrored(c, width)
            else:
                inside = inside & _is_in(r, height) & _is_in(c, width)
        index = (r.clamp(0, height - 1) * width + c.clamp(0, width - 1)).expand(
            len(x), height, width
        )
        out = (
            x.flatten(2)
            .gather(2, index.flatten(1).unsqueeze(1).expand(-1, x.shape[1], -1))
            .view_as(x)
        )
        return out.masked_fill(~inside.unsqueeze(1), 0)


def make_augmentation(settings: Settings, shape: tuple[int, ...]) -> Augmentation | None:
    """What the settings ask for, for examples of `shape`; None for nothing. ValueError where it cannot be done to them."""
    if not (settings.crop or settings.flip or settings.rotate):
        return None
    if len(shape) != 3:
        raise UsageError(
            f"crop, flip and rotate are for images; these examples are rows of {shape[0]} numbers: leave --crop, --flip and --rotate away"
        )
    if settings.pad == "reflect" and settings.crop >= min(shape[1:]):
        raise UsageError(
            f"crop is {settings.crop}; reflected padding of images of {shape[1]} x {shape[2]} pixels goes up to {min(shape[1:]) - 1}: "
            "lower --crop, or use --pad zero"
        )
    return Augmentation(
        key(settings.seed, "augment"), settings.crop, settings.pad, settings.flip, settings.rotate
    )


def find_sources(
    r: Tensor, c: Tensor, height: int, width: int, degrees: Tensor
) -> tuple[Tensor, Tensor]:
    """Where pixel (r, c) of a picture turned anticlockwise about its centre comes from, to the nearest pixel; may lie outside. degrees: [B, 1, 1]."""
    angle = torch.deg2rad(degrees.double())  # float64, so that every device finds the same pixels
    sin, cos = angle.sin(), angle.cos()
    y, x = r - (height - 1) / 2, c - (width - 1) / 2  # downwards, to the right
    near = [
        (v + 0.5).floor().long()
        for v in (sin * x + cos * y + (height - 1) / 2, cos * x - sin * y + (width - 1) / 2)
    ]
    return near[0], near[1]


def _is_in(at: Tensor, size: int) -> Tensor:
    return (at >= 0) & (at < size)


def _mirrored(at: Tensor, size: int) -> Tensor:
    """-1 is 1 and `size` is size - 2: the border pixel itself is not repeated."""
    return size - 1 - (size - 1 - at.abs()).abs()
