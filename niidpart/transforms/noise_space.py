"""Feature skew: each party's images are noisy in another place."""

from collections.abc import Mapping
from math import isqrt, prod
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints, Stream, normal_blocks
from ..errors import UsageError
from . import Fresh

__all__ = ["noise_space"]


def noise_space(
    n_parties: int,
    rng: Stream,
    *,
    sigma: Annotated[float, "Standard deviation of the noise, 0 or more."] = 0.1,
    fresh: Fresh = False,
) -> dict[str, NDArray[Any]]:
    """Noise of standard deviation sigma in one cell of a grid over the image, party i in cell i, the last party clean. NIID-Bench, noise_type space.

    The grid is g x g, g = ceil(sqrt(P - 1)), its cells counted row by row. (The authors' code counts by the width of a cell, which leads out of
    the image at 10 parties.) For images alone, of at least g x g pixels. The noise of an example is fixed, or with fresh drawn anew each
    epoch, as the authors' code does.
    Columns: seed [P] uint64, of the party's noise; cell [P] int64, -1: clean; grid [P] int64, g.
    """
    if not sigma >= 0:
        raise UsageError(f"noise-space sigma is {sigma}; it must be 0 or more")
    grid = isqrt(n_parties - 2) + 1 if n_parties > 1 else 1
    cell = np.arange(n_parties)
    cell[-1] = -1
    return {
        "seed": rng.child("seed").words(n_parties),
        "cell": cell,
        "grid": np.full(n_parties, grid),
    }


def apply(
    x: NDArray[Any], rows: Ints, column: Mapping[str, Any], options: Mapping[str, Any]
) -> NDArray[Any]:
    """[n, H, W] or [n, H, W, C] float32: `x` plus the noise that each of `rows` always has at this party. Fresh noise is left to training."""
    if x.ndim not in (3, 4):
        raise UsageError(
            f"noise-space needs images [n, H, W] or [n, H, W, C]; these features have shape {list(x.shape)}, which has no places"
        )
    top, bottom, left, right = bounds(
        int(column["cell"]), int(column["grid"]), x.shape[1], x.shape[2]
    )
    if options["fresh"] or not (bottom - top) * (right - left):
        return x
    out = x.astype(np.float32)
    for some, z in normal_blocks(int(column["seed"]), rows, prod(x.shape[1:])):
        out[some, top:bottom, left:right] += (
            options["sigma"] * z.reshape(-1, *x.shape[1:])[:, top:bottom, left:right]
        )
    return out


def bounds(cell: int, grid: int, height: int, width: int) -> tuple[int, int, int, int]:
    """(top, bottom, left, right) of a cell in pixels, as for slices; empty for cell -1. Cells cover the image, their sides differ by at most 1."""
    if grid > min(height, width):
        most = min(height, width) ** 2 + 1
        raise UsageError(
            f"a {grid} x {grid} grid has more cells than images of {height} x {width} have rows and columns; use at most {most} parties"
        )
    if cell < 0:
        return 0, 0, 0, 0
    row, column = divmod(cell, grid)
    return (
        row * height // grid,
        (row + 1) * height // grid,
        column * width // grid,
        (column + 1) * width // grid,
    )
