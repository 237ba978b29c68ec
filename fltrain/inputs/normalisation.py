"""Normalisation: subtract a mean, divide by a deviation."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from niidpart.errors import UsageError

_VALUES = 1 << 22  # read at a time

# Mean and deviation of each channel, for values in [0, 1]; those of "half" are for any number of
# channels.
CONSTANTS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    # Li, He, Song: MOON (CVPR 2021), the authors' code, utils.py
    "cifar10": ((125.3 / 255, 123.0 / 255, 113.9 / 255), (63.0 / 255, 62.1 / 255, 66.7 / 255)),
    "cifar100": (
        (0.5070751592371323, 0.48654887331495095, 0.4409178433670343),
        (0.2673342858792401, 0.2564384629170883, 0.27615047132568404),
    ),
    # Kopparapu, Lin, Zhao: FedCD (2020), the authors' code
    "cifar10-fedcd": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    # Cha, Chang (Information 2025), the authors' code, src/utils/constants.py: there for 0..255
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
        """Return x with mean 0 and deviation 1, as far as the constants are those of x."""
        return (x - self.mean) / self.std


def make_normalisation(how: str, x: Tensor, places: Tensor | None = None) -> Normalisation | None:
    """Return what the setting `normalise` asks for, None for "none".

    x: training rows [n, C, H, W] or [n, D], uint8 or float32; where there are places [n], these are
    the training rows among those of x. UsageError where it does not fit.
    """
    if how == "none":
        return None
    if how == "data":
        return fit_normalisation(x, places)
    mean, std = CONSTANTS[how]
    if how != "half" and (x.ndim != 4 or x.shape[1] != len(mean)):
        if x.ndim == 4:
            these = f"these have {x.shape[1]}"
        else:
            these = f"these examples are rows of {x.shape[1]} numbers"
        channels = "1 channel" if len(mean) == 1 else f"{len(mean)} channels"
        raise UsageError(
            f"normalise {how} is for images of {channels}, {these}; use --normalise data"
        )
    shape = _constant_shape(x)
    return Normalisation(
        mean=torch.tensor(mean, dtype=torch.float32, device=x.device).view(shape),
        std=torch.tensor(std, dtype=torch.float32, device=x.device).view(shape),
    )


def _constant_shape(x: Tensor) -> tuple[int, ...]:
    """Return the shape in which constants of channels or columns meet a batch."""
    return (-1, 1, 1) if x.ndim == 4 else (-1,)


def fit_normalisation(x: Tensor, places: Tensor | None = None) -> Normalisation:
    """Return mean and population deviation over the rows, per channel or column, in float64.

    What is constant keeps the deviation 1. x, places: as of `make_normalisation`.
    """
    n_rows = len(x) if places is None else len(places)
    if not n_rows:
        raise UsageError("normalise is data, and no party has a training row to take the mean of")
    scale = 255 if x.dtype == torch.uint8 else 1

    def read(start: int, end: int) -> Tensor:
        """Return rows as [rows, C, pixels] or [rows, D, 1]."""
        rows = x[start:end] if places is None else x[places[start:end]]
        return rows.reshape(len(rows), x.shape[1], -1)

    one = read(0, 1)[0]
    # taken off before summing, so that what is constant sums to exactly 0
    first = one[:, :1].double() / scale  # [C, 1]
    n = n_rows * one.shape[1]

    def average(f: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the mean of f over all rows and pixels, [C, 1] float64, by blocks of rows."""
        total = torch.zeros_like(first[:, 0])
        at_once = max(1, _VALUES // one.numel())
        for start in range(0, n_rows, at_once):
            block = read(start, min(start + at_once, n_rows))
            shifted = block.double() / scale - first
            total = total + f(shifted).sum((0, 2))
        return total.unsqueeze(1) / n

    mean = average(lambda d: d)
    std = average(lambda d: (d - mean).square()).sqrt().float()
    if not bool(torch.isfinite(std).all()):
        number = int((~torch.isfinite(std)).nonzero()[0, 0])
        where = f"channel {number}" if x.ndim == 4 else f"column {number}"
        raise UsageError(
            f"{where} of the training rows has no finite mean and deviation; "
            "clean the data, or use --normalise none"
        )
    shape = _constant_shape(x)
    return Normalisation(
        mean=(first + mean).float().view(shape),
        std=torch.where(std == 0, 1.0, std).view(shape),
    )
