"""Common corruptions of images, at the severities that CIFAR-10-C has them."""

from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints, normal_blocks, uniform_field
from ._images import ImageValues, blur, change_contrast

LEVELS = 5
_VALUES = 1 << 18  # drawn at a time; none depends on it

# By severity, as the authors' script for CIFAR-10 has them.
_GAUSSIAN = (0.04, 0.06, 0.08, 0.09, 0.10)
_SPECKLE = (0.06, 0.1, 0.12, 0.16, 0.2)
_IMPULSE = (0.01, 0.02, 0.03, 0.05, 0.07)
_BLUR = (0.4, 0.6, 0.7, 0.8, 1.0)
_CONTRAST = (0.75, 0.5, 0.4, 0.3, 0.15)
_BRIGHTER = (0.05, 0.1, 0.15, 0.2, 0.3)
_SATURATION = ((0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2))  # times, and plus
_PIXELS = (0.95, 0.9, 0.85, 0.75, 0.65)  # of the height and width that are left

# Of images, their rows, a seed and a severity from 0.
Corrupt = Callable[[ImageValues, Ints, int, int], ImageValues]


def add_noise(x: ImageValues, rows: Ints, seed: int, level: int) -> ImageValues:
    """Return the images with Gaussian noise."""
    noisy: ImageValues = x + _draw_normal(x, rows, seed, _GAUSSIAN[level])
    return noisy


def add_speckles(x: ImageValues, rows: Ints, seed: int, level: int) -> ImageValues:
    """Return the images with Gaussian noise in proportion to their values."""
    speckles = x * _draw_normal(x, rows, seed, _SPECKLE[level])
    noisy: ImageValues = x + speckles
    return noisy


def _draw_normal(x: ImageValues, rows: Ints, seed: int, std: float) -> NDArray[np.float32]:
    """Return a normal number for each value of the images, of a standard deviation."""
    width = prod(x.shape[1:])
    noise = np.empty((len(rows), width), np.float32)
    for some, z in normal_blocks(seed, rows, width):
        noise[some] = std * z
    return noise.reshape(x.shape)


def add_impulses(x: ImageValues, rows: Ints, seed: int, level: int) -> ImageValues:
    """Return the images with some values 0 and as many 1."""
    width = prod(x.shape[1:])
    flat = x.reshape(len(rows), width)
    out = np.empty_like(flat)
    step = max(1, _VALUES // max(width, 1))
    for start in range(0, len(rows), step):
        some = slice(start, start + step)
        u, words = uniform_field(seed, rows[some], width)
        value = (words & np.uint64(1)).astype(np.float32)
        out[some] = np.where(u < _IMPULSE[level], value, flat[some])
    return out.reshape(x.shape)


def defocus(x: ImageValues, rows: Ints, seed: int, level: int) -> ImageValues:
    """Return the images blurred by a Gaussian."""
    return blur(x, _BLUR[level])


def fade(x: ImageValues, rows: Ints, seed: int, level: int) -> ImageValues:
    """Return the images with less contrast."""
    return change_contrast(x, _CONTRAST[level])


def brighten(x: ImageValues, rows: Ints, seed: int, level: int) -> ImageValues:
    """Return the images with a higher value in HSV: hue and saturation stay."""
    value = _find_value(x)
    brighter = np.minimum(value + np.float32(_BRIGHTER[level]), np.float32(1))
    ratio = brighter / np.where(value > 0, value, np.float32(1))
    return np.where(value > 0, x * ratio, brighter)  # black becomes grey


def saturate(x: ImageValues, rows: Ints, seed: int, level: int) -> ImageValues:
    """Return the images with another saturation in HSV; grey images have none and stay."""
    if x.ndim == 3 or x.shape[3] != 3:
        return x
    value = _find_value(x)
    lowest = x.min(axis=3, keepdims=True)
    spread = value - lowest
    is_coloured = (value > 0) & (spread > 0)
    saturation = spread / np.where(value > 0, value, np.float32(1))
    times, plus = _SATURATION[level]
    wanted = np.clip(
        saturation * np.float32(times) + np.float32(plus), np.float32(0), np.float32(1)
    )
    ratio = wanted / np.where(is_coloured, saturation, np.float32(1))
    return np.where(is_coloured, value - (value - x) * ratio, x)


def pixelate(x: ImageValues, rows: Ints, seed: int, level: int) -> ImageValues:
    """Return the images made smaller and larger again, by means over areas."""
    for axis in (1, 2):
        length = x.shape[axis]
        smaller = max(1, int(length * _PIXELS[level]))
        x = _resample(_resample(x, smaller, axis), length, axis)
    return x


def _find_value(x: ImageValues) -> ImageValues:
    """Return the value of each pixel in HSV, its largest channel; of grey images themselves."""
    return x.max(axis=3, keepdims=True) if x.ndim == 4 else x


def _resample(x: ImageValues, n: int, axis: int) -> ImageValues:
    """Return the images with n pixels along an axis, each the mean of the area that it covers."""
    length = x.shape[axis]
    moved = np.moveaxis(x, axis, 0)
    out = np.zeros((n, *moved.shape[1:]), np.float32)
    for place in range(n):
        start, stop = place * length, (place + 1) * length  # in n-ths of an old pixel
        first, behind = start // n, -(-stop // n)
        for old in range(first, behind):
            end = min(stop, (old + 1) * n)
            covered = end - max(start, old * n)
            out[place] += np.float32(covered / length) * moved[old]
    return np.moveaxis(out, 0, axis)


KINDS: Mapping[str, Corrupt] = MappingProxyType(
    {
        "gaussian-noise": add_noise,
        "speckle-noise": add_speckles,
        "impulse-noise": add_impulses,
        "gaussian-blur": defocus,
        "contrast": fade,
        "brightness": brighten,
        "saturate": saturate,
        "pixelate": pixelate,
    }
)
