"""The papers' CNN with MOON's projection head."""

from ._shapes import require_image
from ._staged import Staged
from .cnn import cnn

__all__ = ["cnn_head"]


def cnn_head(shape: tuple[int, ...], n_classes: int) -> Staged:
    """The CNN with MOON's projection head: its 84 features, 84 units with ReLU, 256 units (now the
    features), K. Li, He, Song, CVPR 2021.

    92,626 parameters for 3 x 32 x 32 and 10 classes, 75,046 for 1 x 28 x 28.
    """
    require_image("cnn-head", shape, (28, 32))
    return cnn(shape, n_classes).with_head(256)
