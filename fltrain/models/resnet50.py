"""ResNet-50 for small images."""

from ._residual import bottleneck, residual_network
from ._shapes import require_image
from ._staged import Staged

__all__ = ["resnet50"]


def resnet50(shape: tuple[int, ...], n_classes: int) -> Staged:
    """ResNet-50 with batch norm, for small images: a 3 x 3 stem without max-pooling, 16 bottleneck
    blocks, one linear layer. He et al., CVPR 2016.

    23,520,842 parameters for 3 channels and 10 classes, 23,705,252 for 100, and 53,173 numbers in
    buffers. As in Li et al., ICDE 2022, technical report, Figure 24, whose code leaves 1000 outputs
    (25,549,352 parameters) where ours has one for each class, and in Wang, Wang, Pei, ICMLC 2024,
    section 4.1. 18 stages: the stem, the blocks (the last with the mean over the image), the linear
    layer.
    """
    require_image("resnet50", shape)
    return residual_network(shape, n_classes, (3, 4, 6, 3), bottleneck, expansion=4)
