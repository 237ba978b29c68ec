"""What parties know of the features of a class, put together, and features drawn like theirs.

Luo et al., NeurIPS 2021. Axes: D features, M features that are drawn.
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from ..draws import fold, normal
from ..random_words import MASK


class ClassGaussian(NamedTuple):
    """The features of a class: how many, mean [D] and covariance [D, D] with n - 1, float64."""

    n: int
    mean: Tensor
    covariance: Tensor


def measure_class(features: Tensor) -> ClassGaussian:
    """Return what a party sends of its features [n, D] of a class; n is at least 1.

    Of a single one the covariance is 0.
    """
    n = len(features)
    wide = features.double()
    mean = wide.mean(0)
    away = wide - mean
    return ClassGaussian(n, mean, away.T @ away / max(n - 1, 1))


def merge_gaussians(of_parties: Iterable[ClassGaussian]) -> ClassGaussian | None:
    """Return the features of a class over all parties, from what each sends; None without any.

    Mean and covariance are those of all features taken together.
    """
    parts = list(of_parties)
    n = sum(part.n for part in parts)
    if not n:
        return None
    mean = torch.stack([part.n / n * part.mean for part in parts]).sum(0)
    degrees = max(n - 1, 1)
    covariance = -n / degrees * torch.outer(mean, mean)
    for part in parts:
        within = (part.n - 1) / degrees * part.covariance
        square = torch.outer(part.mean, part.mean)
        covariance = covariance + within + part.n / degrees * square
    return ClassGaussian(n, mean, covariance)


def draw_features(gaussian: ClassGaussian, n: int, key: int, label: int) -> Tensor:
    """Return n features [M, D] of a class, normal with its mean and covariance, drawn by counter.

    By the symmetric root of the covariance, which is one: eigenvectors have either sign.
    """
    device = gaussian.mean.device
    values, vectors = torch.linalg.eigh(gaussian.covariance)
    root = vectors @ torch.diag(values.clamp(min=0).sqrt()) @ vectors.T
    of_class = int(fold(key, label))
    words = torch.tensor([[of_class & MASK, of_class >> 32]], device=device).expand(n, 2)
    rows = torch.arange(n, device=device)
    drawn = normal(words, rows, epoch=0, width=len(gaussian.mean))
    features: Tensor = gaussian.mean + drawn @ root
    return features


def count_numbers(n_features: int) -> int:
    """Return how many numbers a party sends of a class: how many, a mean, a covariance once."""
    return 1 + n_features + n_features * (n_features + 1) // 2
