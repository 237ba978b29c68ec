"""Feature skew: each party's images have less contrast than those of the party before."""

from collections.abc import Mapping
from typing import Annotated, Any

from numpy.typing import NDArray

from ..arithmetic.rng import Ints, Stream
from ..registry import AtLeast, AtMost
from . import FeatureTransform
from ._images import change_contrast, count_up, require_images

_SHARE = (AtLeast(0), AtMost(1))


def contrast(
    n_parties: int,
    rng: Stream,
    *,
    loss: Annotated[
        float,
        "How much of its contrast the last party loses, to which it grows from party to party.",
        *_SHARE,
    ] = 0.8,
) -> dict[str, NDArray[Any]]:
    """Images keep 1 - loss * i / P of their contrast at party i = 1..P, about the mean of each
    image and channel. Hendrycks and Dietterich, ICLR 2019, contrast, whose severities on CIFAR-10
    keep 0.75, 0.5, 0.4, 0.3 and 0.15.

    Nothing is drawn. For images alone.

    Returns
    -------
    dict of str to array [P]
        factor: float64, what is kept.
    """
    return {"factor": 1 - loss * count_up(n_parties)}


def apply(
    x: NDArray[Any], rows: Ints, column: Mapping[str, Any], options: Mapping[str, Any]
) -> NDArray[Any]:
    """Return the images of this party with the contrast that it has."""
    return change_contrast(require_images("contrast", x), float(column["factor"]))


ENTRY = FeatureTransform(
    draw=contrast,
    apply=apply,
    columns={"factor": _SHARE},
    paper="hendrycks2019benchmarking",
)
