"""Feature skew: each party's images are out of focus, more so from party to party."""

from collections.abc import Mapping
from typing import Annotated, Any

from numpy.typing import NDArray

from ..arithmetic.rng import Ints, Stream
from ..registry import AtLeast, AtMost
from . import FeatureTransform
from ._images import blur as blur_images
from ._images import count_up, require_images

_STD = (AtLeast(0), AtMost(64))  # pixels


def blur(
    n_parties: int,
    rng: Stream,
    *,
    sigma: Annotated[
        float,
        "Standard deviation of the blur of the last party, in pixels, to which it grows.",
        *_STD,
    ] = 1.0,
) -> dict[str, NDArray[Any]]:
    """A Gaussian blur of standard deviation sigma * i / P pixels for party i = 1..P. Hendrycks
    and Dietterich, ICLR 2019, gaussian_blur, whose severities are 0.4, 0.6, 0.7, 0.8 and 1 pixel.

    Beyond an edge its nearest pixel goes on. Nothing is drawn. For images alone.

    Returns
    -------
    dict of str to array [P]
        std: float64, in pixels.
    """
    return {"std": sigma * count_up(n_parties)}


def apply(
    x: NDArray[Any], rows: Ints, column: Mapping[str, Any], options: Mapping[str, Any]
) -> NDArray[Any]:
    """Return the images of this party, out of focus."""
    return blur_images(require_images("blur", x), float(column["std"]))


ENTRY = FeatureTransform(
    draw=blur, apply=apply, columns={"std": _STD}, paper="hendrycks2019benchmarking"
)
