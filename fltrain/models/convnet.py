"""FedCD's network."""

from torch import nn

from ._shapes import require_image
from ._staged import Staged

__all__ = ["convnet"]

# Width and stride of each convolution.
LAYERS = (
    (32, 1),
    (32, 1),
    (64, 2),
    (64, 1),
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 1),
    (256, 1),
)


def convnet(shape: tuple[int, ...], n_classes: int) -> Staged:
    """Nine 3 x 3 convolutions (32 to 256 channels) with batch norm, the mean over the image, one
    linear layer. Kopparapu, Lin, Zhao 2020 (FedCD).

    1,212,778 parameters for 3 channels and 10 classes, and 2,057 numbers in buffers. Section 3.1
    says 10 layers; from the authors' code the widths 32, 32, 64, 64, 64, 128, 128, 256, 256, stride
    2 at the third and the sixth, no biases in convolutions, ReLU.
    """
    require_image("convnet", shape)
    stages, channels = {}, shape[0]
    for i, (width, stride) in enumerate(LAYERS, 1):
        mean = [nn.AdaptiveAvgPool2d(1), nn.Flatten()] if i == len(LAYERS) else []
        stages[f"conv{i}"] = nn.Sequential(
            nn.Conv2d(channels, width, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            *mean,
        )
        channels = width
    return Staged(**stages, out=nn.Linear(channels, n_classes))
