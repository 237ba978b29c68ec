"""Feature skew: each party's images have a tint of their own, as another camera gives."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints, Stream
from ..registry import AtLeast, AtMost, Below
from . import FeatureTransform
from ._images import require_images

_CHANNELS = ("red", "green", "blue")
_GAIN = (AtLeast(0), AtMost(2))


def colour(
    n_parties: int,
    rng: Stream,
    *,
    tint: Annotated[
        float, "Half-width of the gains, which are drawn around 1.", AtLeast(0), Below(1)
    ] = 0.4,
) -> dict[str, NDArray[Any]]:
    """Each party has gains of its own for red, green and blue, drawn uniformly from 1 - tint to
    1 + tint: a white balance, by the diagonal model of Finlayson, Drew and Funt, JOSA A 1994.

    Grey images get the gain of red, and are darker or brighter. Further channels stay. Nothing is
    clipped. For images alone.

    Returns
    -------
    dict of str to array [P]
        red, green, blue: float64, the gains.
    """
    gains = 1 + tint * (2 * rng.child("gains").uniform(3 * n_parties) - 1)
    return dict(zip(_CHANNELS, gains.reshape(3, n_parties), strict=True))


def apply(
    x: NDArray[Any], rows: Ints, column: Mapping[str, Any], options: Mapping[str, Any]
) -> NDArray[Any]:
    """Return the images of this party in its tint."""
    images = require_images("colour", x)
    gains = [np.float32(column[name]) for name in _CHANNELS]
    if images.ndim == 3:
        return images * gains[0]
    tinted = images.copy()
    for channel, gain in enumerate(gains[: images.shape[3]]):
        tinted[..., channel] *= gain
    return tinted


ENTRY = FeatureTransform(
    draw=colour,
    apply=apply,
    columns=dict.fromkeys(_CHANNELS, _GAIN),
    paper="finlayson1994color",
)
