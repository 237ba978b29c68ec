"""LeNet-5 with batch norm."""

from torch import nn

from ._shapes import require_image
from ._staged import Staged

__all__ = ["lenet5_bn"]


def lenet5_bn(shape: tuple[int, ...], n_classes: int) -> Staged:
    """The CNN with batch norm after each convolution: 6 and 16 channels, then 120, 84 and K units.
    Cha, Chang, Information 2025 (their code).

    62,050 parameters for 3 x 32 x 32 and 10 classes, 44,470 for 1 x 28 x 28, and 46 numbers in
    buffers. It is FL-bench's LeNet-5, and what the released settings run on CIFAR-10; the text has
    two layers (`twonn`).
    """
    require_image("lenet5-bn", shape, (28, 32))
    side = (shape[1] - 12) // 4  # of the image behind both convolutions and poolings
    flat = 16 * side * side
    return Staged(
        conv1=nn.Sequential(
            nn.Conv2d(shape[0], 6, 5),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ),
        conv2=nn.Sequential(
            nn.Conv2d(6, 16, 5),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ),
        fc1=nn.Sequential(
            nn.Flatten(),
            nn.Linear(flat, 120),
            nn.ReLU(),
        ),
        fc2=nn.Sequential(nn.Linear(120, 84), nn.ReLU()),
        out=nn.Linear(84, n_classes),
    )
