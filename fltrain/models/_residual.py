"""Residual networks for small images. He et al., CVPR 2016, with the downsampling stride in the 3 x 3 convolution, as in torchvision."""

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F

from ._staged import Staged

Norm = Callable[[int], nn.Module]
Body = Callable[[int, int, int, Norm], nn.Module]


class Residual(nn.Module):
    """relu(body(x) + shortcut(x))."""

    def __init__(self, body: nn.Module, shortcut: nn.Module):
        super().__init__()
        self.body, self.shortcut = body, shortcut

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.shortcut(x))


def conv(channels: int, width: int, size: int, stride: int, norm: Norm) -> list[nn.Module]:
    """A convolution without bias that keeps the image's size up to its stride, and its normalisation."""
    return [nn.Conv2d(channels, width, size, stride, padding=size // 2, bias=False), norm(width)]


def basic(channels: int, width: int, stride: int, norm: Norm) -> nn.Module:
    """Two 3 x 3 convolutions."""
    return nn.Sequential(
        *conv(channels, width, 3, stride, norm), nn.ReLU(), *conv(width, width, 3, 1, norm)
    )


def bottleneck(channels: int, width: int, stride: int, norm: Norm) -> nn.Module:
    """1 x 1, 3 x 3 and 1 x 1 convolutions; the last has four times the width."""
    down, middle, up = (
        conv(channels, width, 1, 1, norm),
        conv(width, width, 3, stride, norm),
        conv(width, 4 * width, 1, 1, norm),
    )
    return nn.Sequential(*down, nn.ReLU(), *middle, nn.ReLU(), *up)


def residual_network(
    shape: tuple[int, ...],
    n_classes: int,
    groups: tuple[int, ...],
    body: Body,
    norm: Norm = nn.BatchNorm2d,
    expansion: int = 1,
) -> Staged:
    """A 3 x 3 stem without max-pooling, `groups` blocks of 64, 128, 256 and 512 channels times `expansion`, mean over the image, one linear layer.

    A stage is the stem, a block, or the linear layer; the last block's stage takes the mean, so that its output is flat. Convolutions
    start from N(0, 2 / fan_out), norms from 1 and 0.
    """
    stages: dict[str, nn.Module] = {
        "stem": nn.Sequential(*conv(shape[0], 64, 3, 1, norm), nn.ReLU())
    }
    channels = 64
    for group, n_blocks in enumerate(groups):
        for block in range(n_blocks):
            width, stride = 64 * 2**group, 2 if group and not block else 1
            same = stride == 1 and channels == expansion * width
            shortcut = (
                nn.Identity()
                if same
                else nn.Sequential(*conv(channels, expansion * width, 1, stride, norm))
            )
            stages[f"block{len(stages)}"] = Residual(body(channels, width, stride, norm), shortcut)
            channels = expansion * width
    name, last = stages.popitem()
    stages[name] = nn.Sequential(last, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model = Staged(**stages, out=nn.Linear(channels, n_classes))
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return model
