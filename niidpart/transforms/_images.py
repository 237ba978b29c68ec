"""Changes of images that several transforms make.

Images are [n, H, W] or [n, H, W, C] of float32. Each value is made of its own image alone, by
additions and multiplications in one order, so that it is the same on every machine.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic import exact
from ..errors import UsageError

ImageValues = NDArray[Any]

_REACH = 4.0  # standard deviations that a Gaussian kernel reaches to either side


def require_images(name: str, x: NDArray[Any]) -> ImageValues:
    """Return the images; UsageError, with the transform's name, for features without places."""
    if x.ndim not in (3, 4):
        raise UsageError(
            f"{name} needs images [n, H, W] or [n, H, W, C]; these features have shape "
            f"{list(x.shape)}, which has no places"
        )
    return x


def count_up(n_parties: int) -> NDArray[np.float64]:
    """Return [P] i / P for party i = 1..P, as the noise of the papers grows."""
    return np.arange(1, n_parties + 1) / n_parties


def blur(x: ImageValues, sigma: float) -> ImageValues:
    """Return the images blurred by a Gaussian; beyond an edge its nearest pixel goes on."""
    if not sigma > 0:
        return x
    radius = int(_REACH * sigma + 0.5)
    steps = np.arange(-radius, radius + 1) / sigma
    weights = exact.exp(-0.5 * steps * steps)
    kernel = (weights / exact.add_in_order(weights)).tolist()
    return _blur_axis(_blur_axis(x, kernel, 1), kernel, 2)


def _blur_axis(x: ImageValues, kernel: list[float], axis: int) -> ImageValues:
    """Return the images with each pixel the weighted sum of its neighbours along an axis."""
    radius, length = len(kernel) // 2, x.shape[axis]
    blurred = np.zeros_like(x)
    for place, weight in enumerate(kernel):
        at = np.clip(np.arange(length) + place - radius, 0, length - 1)
        blurred += weight * np.take(x, at, axis=axis)
    return blurred


def average(x: ImageValues) -> ImageValues:
    """Return [n, 1, 1] or [n, 1, 1, C] the mean of each image, by channel."""
    n, height, width = x.shape[:3]
    n_channels = x.shape[3] if x.ndim == 4 else 1
    pixels = x.reshape(n, height * width, n_channels)
    by_channel = np.moveaxis(pixels, 1, 2).astype(np.float64)  # [n, C, H * W]
    means = exact.add_in_order(by_channel) / (height * width)
    shaped: ImageValues = means.reshape((n, 1, 1, *x.shape[3:])).astype(np.float32)
    return shaped


def change_contrast(x: ImageValues, factor: float) -> ImageValues:
    """Return the images with what differs from their mean times a factor."""
    means = average(x)
    return (x - means) * np.float32(factor) + means
