"""What all sides of training.py share, so that they differ in nothing but the library: data, network, one local epoch, evaluation.

Images stay uint8 in memory and become floats in the network, batch by batch. Needs torch and numpy alone: it runs in every peer's environment.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

LR, MOMENTUM, BATCH, TEST_BATCH = 0.01, 0.9, 64, 1000


@dataclass(frozen=True, eq=False)
class Work:
    """x [N, 1, 28, 28] uint8, y [N] int64 and their test parts; rows: those of each party. processes x threads: how a side may use the cores."""

    folder: Path
    x: Tensor
    y: Tensor
    x_test: Tensor
    y_test: Tensor
    rows: list[Tensor]
    engine: str
    n_rounds: int
    processes: int
    threads: int

    @classmethod
    def read(
        cls, folder: Path, engine: str = "", n_rounds: int = 0, processes: int = 1, threads: int = 1
    ) -> "Work":
        with np.load(folder / "data.npz") as archive:
            held = {
                name: torch.from_numpy(archive[name])
                for name in ("x", "y", "x_test", "y_test", "indices", "indptr")
            }
        rows = list(held["indices"].long().tensor_split(held["indptr"][1:-1].long()))
        images = (
            held["x"].unsqueeze(1),
            held["y"].long(),
            held["x_test"].unsqueeze(1),
            held["y_test"].long(),
        )
        return cls(folder, *images, rows, engine, n_rounds, processes, threads)


class Scaled(nn.Module):
    """Bytes to floats in 0..1."""

    def forward(self, x: Tensor) -> Tensor:
        return x.float().div_(255)


def cnn() -> nn.Sequential:
    """The papers' CNN, 44,426 parameters: fltrain/models/cnn.py, written out for environments without fltrain."""
    torch.manual_seed(0)
    features = [
        nn.Conv2d(1, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
    ]
    return nn.Sequential(
        Scaled(),
        *features,
        nn.Linear(256, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )


def shuffled(x: Tensor, y: Tensor, rows: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The batches of one epoch of a party, in a new order each time, gathered straight from memory."""
    for at in rows[torch.randperm(len(rows))].split(BATCH):
        yield x[at], y[at]


def optimiser(net: nn.Module) -> torch.optim.SGD:
    return torch.optim.SGD(net.parameters(), lr=LR, momentum=MOMENTUM)


def local_epoch(net: nn.Module, work: Work, party: int) -> None:
    """One epoch of one party, its momentum fresh."""
    sgd = optimiser(net)
    net.train()
    for x, y in shuffled(work.x, work.y, work.rows[party]):
        sgd.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        sgd.step()


@torch.no_grad()
def evaluate(net: nn.Module, work: Work) -> tuple[float, float]:
    """(accuracy, mean loss) on the test set."""
    net.eval()
    right, loss = 0, 0.0
    for x, y in zip(work.x_test.split(TEST_BATCH), work.y_test.split(TEST_BATCH), strict=True):
        out = net(x)
        right += int((out.argmax(1) == y).sum())
        loss += float(nn.functional.cross_entropy(out, y, reduction="sum"))
    return right / len(work.y_test), loss / len(work.y_test)
