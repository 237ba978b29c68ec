"""Feature skew: Gaussian noise whose level grows from party to party."""

from collections.abc import Mapping
from math import prod
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints, Stream, normal_blocks
from ..registry import AtLeast
from . import FeatureTransform, Fresh


def noise(
    n_parties: int,
    rng: Stream,
    *,
    sigma: Annotated[
        float, "Noise of the last party, to which it grows from party to party.", AtLeast(0)
    ] = 0.1,
    level: Annotated[
        Literal["variance", "std"], "What sigma is: the variance, or the standard deviation."
    ] = "variance",
    fresh: Fresh = False,
) -> dict[str, NDArray[Any]]:
    """Noise of variance sigma * i / P for party i = 1..P, fixed for each example. Li et al., ICDE
    2022, section IV-C.

    level="std" with fresh=True is what the authors' code does: standard deviation
    sigma * i / (P - 1) for i = 0..P-1, drawn again in each epoch.

    Returns
    -------
    dict of str to array [P]
        seed: uint64, of the party's noise. std: float64.
    """
    i = np.arange(n_parties)
    if level == "variance":
        std = np.sqrt(sigma * (i + 1) / n_parties)
    else:
        std = sigma * i / max(n_parties - 1, 1)
    return {"seed": rng.child("seed").words(n_parties), "std": std}


def apply(
    x: NDArray[Any], rows: Ints, column: Mapping[str, Any], options: Mapping[str, Any]
) -> NDArray[Any]:
    """Return [n, ...] float32: `x` plus the noise that each of `rows` always has at this party."""
    if options["fresh"]:
        return x
    # Values are numbered as in the flattened example, so noise does not depend on its shape.
    flat = x.reshape(len(rows), prod(x.shape[1:]))
    out = np.empty(flat.shape, np.float32)
    for some, z in normal_blocks(int(column["seed"]), rows, flat.shape[1]):
        out[some] = flat[some] + float(column["std"]) * z
    return out.reshape(x.shape)


ENTRY = FeatureTransform(
    draw=noise, apply=apply, columns={"seed": (), "std": (AtLeast(0),)}, paper="li2022silos"
)
