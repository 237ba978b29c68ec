"""Feature skew: each party's images are noisy in another place."""

from collections.abc import Mapping
from math import isqrt, prod
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints, Stream, normal_blocks
from ..errors import UsageError
from ..registry import AtLeast, AtMost
from . import FeatureTransform, Fresh

_MOST = (1 << 31) - 1  # parties; an array with an entry for each of more is no split's


def noise_space(
    n_parties: int,
    rng: Stream,
    *,
    sigma: Annotated[float, "Standard deviation of the noise.", AtLeast(0)] = 0.1,
    fresh: Fresh = False,
) -> dict[str, NDArray[Any]]:
    """Noise of standard deviation sigma in one cell of a grid over the image, party i in cell i,
    the last party clean. NIID-Bench, noise_type space.

    The grid is g x g, g = ceil(sqrt(P - 1)), its cells counted row by row. (The authors' code
    counts by the width of a cell, which leads out of the image at 10 parties.) For images alone,
    of at least g x g pixels. The noise of an example is fixed, or with fresh drawn again in each
    epoch, as the authors' code does.

    Returns
    -------
    dict of str to array [P]
        seed: uint64, of the party's noise. cell: int64, -1 for clean. grid: int64, g.
    """
    # ceil(sqrt(P - 1)) in integers: the last party needs no cell
    grid = isqrt(n_parties - 2) + 1 if n_parties > 1 else 1
    cell = np.arange(n_parties)
    cell[-1] = -1
    seed = rng.child("seed").words(n_parties)
    return {"seed": seed, "cell": cell, "grid": np.full(n_parties, grid)}


def apply(
    x: NDArray[Any], rows: Ints, column: Mapping[str, Any], options: Mapping[str, Any]
) -> NDArray[Any]:
    """Return `x` plus the noise that each of `rows` always has at this party.

    x: [n, H, W] or [n, H, W, C]; the result is float32.
    """
    if x.ndim not in (3, 4):
        raise UsageError(
            "noise-space needs images [n, H, W] or [n, H, W, C]; these features have shape "
            f"{list(x.shape)}, which has no places"
        )
    height, width = x.shape[1:3]
    cell, grid = int(column["cell"]), int(column["grid"])
    top, bottom, left, right = find_bounds(cell, grid, height, width)
    is_empty = top == bottom or left == right
    if options["fresh"] or is_empty:
        return x
    place = (slice(None), slice(top, bottom), slice(left, right))
    out = x.astype(np.float32)
    # The noise of the whole image is drawn and its cell used: so a cell's noise depends on its
    # place in the image and not on the grid.
    for some, z in normal_blocks(int(column["seed"]), rows, prod(x.shape[1:])):
        noise = z.reshape(-1, *x.shape[1:])
        out[some][place] += options["sigma"] * noise[place]
    return out


def find_bounds(cell: int, grid: int, height: int, width: int) -> tuple[int, int, int, int]:
    """Return (top, bottom, left, right) of a cell in pixels, as for slices; empty for cell -1.

    Cells cover the image, and their sides differ by at most 1.
    """
    if grid > min(height, width):
        side = min(height, width)
        most = side * side + 1
        raise UsageError(
            f"a {grid} x {grid} grid has more cells than images of {height} x {width} have rows "
            f"and columns; use at most {most} parties"
        )
    if cell < 0:
        return 0, 0, 0, 0
    row, column = divmod(cell, grid)
    top, bottom = row * height // grid, (row + 1) * height // grid
    left, right = column * width // grid, (column + 1) * width // grid
    return top, bottom, left, right


ENTRY = FeatureTransform(
    draw=noise_space,
    apply=apply,
    columns={
        "seed": (),
        "cell": (AtLeast(-1), AtMost(_MOST)),
        "grid": (AtLeast(1), AtMost(isqrt(_MOST) + 1)),
    },
    paper="li2022silos",
)
