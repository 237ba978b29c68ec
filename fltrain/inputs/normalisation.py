"""Normalisation: subtract a mean, divide by a deviation."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from niidpart.errors import UsageError

_VALUES = 1 << 22  # read at a time

# Mean and deviation of each channel, for values in [0, 1]; those of "half" are for any number of channels.
CONSTANTS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    # Li, He, Song: MOON (CVPR 2021), the authors' code, utils.py
    "cifar10": ((125.3 / 255, 123.0 / 255, 113.9 / 255), (63.0 / 255, 62.1 / 255, 66.7 / 255)),
    "cifar100": (
        (0.5070751592371323, 0.48654887331495095, 0.4409178433670343),
        (0.2673342858792401, 0.2564384629170883, 0.27615047132568404),
    ),
    # Kopparapu, Lin, Zhao: FedCD (2020), the authors' code
    "cifar10-fedcd": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    # Cha, Chang (Information 2025), the authors' code, src/utils/constants.py: there for values 0..255
    "mnist-map": ((33.3184 / 255,), (78.5675 / 255,)),
    "cifar10-map": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    # Li et al.: FedBN (ICLR 2021), the authors' code for digits
    "half": ((0.5,), (0.5,)),
}


@dataclass(frozen=True, eq=False)
class Normalisation:
    """mean, std: float32, [C, 1, 1] for images, [D] for tables, or [1] for all."""

    mean: Tensor
    std: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std


def make_normalisation(how: str, x: Tensor) -> Normalisation | None:
    """The setting `normalise` for training rows x [n, C, H, W] or [n, D], uint8 or float32; None for "none". ValueError where it does not fit."""
    if how == "none":
        return None
    if how == "data":
        return fit_normalisation(x)
    mean, std = CONSTANTS[how]
    if how != "half" and (x.ndim != 4 or x.shape[1] != len(mean)):
        these = (
            f"these have {x.shape[1]}"
            if x.ndim == 4
            else f"these examples are rows of {x.shape[1]} numbers"
        )
        raise UsageError(
            f"normalise {how} is for images of {len(mean)} channel{'s' * (len(mean) > 1)}, {these}; use --normalise data"
        )
    shape = (-1, 1, 1) if x.ndim == 4 else (-1,)
    return Normalisation(
        *(
            torch.tensor(values, dtype=torch.float32, device=x.device).view(shape)
            for values in (mean, std)
        )
    )


def fit_normalisation(x: Tensor) -> Normalisation:
    """Mean and population deviation over the rows x, per channel or per column, in float64. What is constant keeps the deviation 1."""
    if not len(x):
        raise UsageError("normalise is data, and no party has a training row to take the mean of")
    values = x.reshape(len(x), x.shape[1], -1)  # [n, C, pixels] or [n, D, 1]
    scale = 255 if x.dtype == torch.uint8 else 1
    first = (
        values[0, :, :1].double() / scale
    )  # taken off before summing, so that what is constant sums to exactly 0
    n = values.shape[0] * values.shape[2]

    def per_channel(f: Callable[[Tensor], Tensor]) -> Tensor:
        """[C, 1] float64: the mean of f over all rows and pixels, a block of rows at a time."""
        blocks = values.split(max(1, _VALUES // values[0].numel()))
        return (
            sum(
                (f(b.double() / scale - first).sum((0, 2)) for b in blocks),
                torch.zeros_like(first[:, 0]),
            ).unsqueeze(1)
            / n
        )

    mean = per_channel(lambda d: d)
    std = per_channel(lambda d: (d - mean).square()).sqrt().float()
    if not bool(torch.isfinite(std).all()):
        where = f"{'channel' if x.ndim == 4 else 'column'} {int((~torch.isfinite(std)).nonzero()[0, 0])}"
        raise UsageError(
            f"{where} of the training rows has no finite mean and deviation; clean the data, or use --normalise none"
        )
    shape = (-1, 1, 1) if x.ndim == 4 else (-1,)
    return Normalisation(
        (first + mean).float().view(shape), torch.where(std == 0, 1.0, std).view(shape)
    )
