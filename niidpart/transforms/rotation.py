"""Feature skew: each party's images are turned by an angle of its own."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.deal import repeat_evenly
from ..arithmetic.exact import find_direction
from ..arithmetic.rng import Ints, Stream
from ..registry import AtLeast, AtMost
from . import FeatureTransform
from ._images import ImageValues, require_images

_FULL, _MOST_TURNS = 360, 10**6
_CLOSE = 1e-4  # of a pixel: places that rounding moved off a pixel are on it


def rotation(
    n_parties: int,
    rng: Stream,
    *,
    angle: Annotated[
        float,
        "Degrees between one turn and the next, anticlockwise.",
        AtLeast(-_FULL),
        AtMost(_FULL),
    ] = 90.0,
    turns: Annotated[
        int, "How many angles there are: 0, angle, 2 * angle, ...", AtLeast(1), AtMost(_MOST_TURNS)
    ] = 4,
) -> dict[str, NDArray[Any]]:
    """Images turned by 0, angle, ... (turns - 1) * angle degrees; the angles are dealt evenly, to
    parties in random order. Ghosh et al., NeurIPS 2020 (IFCA), section 6: four turns of 90
    degrees; six of 15 are Rotated MNIST.

    About the middle of the image, by bilinear interpolation, and 0 where nothing comes to lie. A
    turn by a multiple of 90 degrees moves the pixels of a square image and changes none. For
    images alone.

    Returns
    -------
    dict of str to array [P]
        degrees: float64.
    """
    order = rng.child("order").permutation(n_parties)
    n_turns = min(turns, n_parties)
    turn = np.empty(n_parties, np.int64)
    turn[order] = repeat_evenly(np.arange(n_turns), n_parties)
    return {"degrees": angle * turn.astype(np.float64)}


def apply(
    x: NDArray[Any], rows: Ints, column: Mapping[str, Any], options: Mapping[str, Any]
) -> NDArray[Any]:
    """Return the images of this party, turned."""
    images = require_images("rotation", x)
    degrees = float(column["degrees"])
    return turn_images(images, degrees) if degrees % 360 else images


def turn_images(x: ImageValues, degrees: float) -> ImageValues:
    """Return images turned anticlockwise about their middle."""
    height, width = x.shape[1:3]
    row, place = _find_origins(height, width, degrees)
    top, left = np.floor(row), np.floor(place)
    below, right = row - top, place - left  # how far between the pixels
    turned = np.zeros_like(x)
    corners = (
        (0, 0, (1 - below) * (1 - right)),
        (0, 1, (1 - below) * right),
        (1, 0, below * (1 - right)),
        (1, 1, below * right),
    )
    trailing = (1,) * (x.ndim - 3)
    for down, over, weight in corners:
        i, j = top.astype(np.int64) + down, left.astype(np.int64) + over
        is_inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
        weights = np.where(is_inside, weight, 0.0).astype(np.float32)
        pixels = x[:, np.clip(i, 0, height - 1), np.clip(j, 0, width - 1)]
        turned += weights.reshape(height, width, *trailing) * pixels
    return turned


def _find_origins(
    height: int, width: int, degrees: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ([H, W] row, [H, W] column) of the place that each pixel's value comes from."""
    cosine, sine = find_direction(degrees)
    middle_row, middle_column = (height - 1) / 2, (width - 1) / 2
    down = np.arange(height)[:, None] - middle_row
    over = np.arange(width)[None, :] - middle_column
    row = middle_row + cosine * down + sine * over
    column = middle_column - sine * down + cosine * over
    return _snap(row), _snap(column)


def _snap(place: NDArray[np.float64]) -> NDArray[np.float64]:
    nearest = np.rint(place)
    return np.where(np.abs(place - nearest) < _CLOSE, nearest, place)


ENTRY = FeatureTransform(
    draw=rotation,
    apply=apply,
    columns={"degrees": (AtLeast(-_FULL * _MOST_TURNS), AtMost(_FULL * _MOST_TURNS))},
    paper="ghosh2020efficient",
)
