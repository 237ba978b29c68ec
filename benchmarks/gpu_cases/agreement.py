"""Correctness: every algorithm, side by side and captured, beside one job after another."""

from typing import Any

import numpy as np
import torch
from torch import nn

import fltrain
import niidpart
from fltrain import tree
from fltrain.algorithms import build
from fltrain.models import Staged

from .bench import Bench, print_head

# Several models within two rounds, and no rounding at random.
OPTIONS: dict[str, dict[str, Any]] = {"fedcd": {"milestones": (1,), "bits": 32}}
# By engine and precision. A captured step multiplies by a learning rate that is a tensor, and rounds
# once more: SCAFFOLD's controls, changes of weights over that rate, come to 1.5e-6.
BOUNDS = {
    "stacked": {"float64": 1e-12, "float32": 1e-6},
    "graph": {"float64": 1e-12, "float32": 5e-6},
}
# FedFomo's gains, small differences of losses, are divided by their sum, in which they may all but
# cancel: rounding of float64 came to 2.6e-11, of float32 to 1.1e-2.
LOOSE = {"fedfomo": {"float64": 1e-9, "float32": 1e-1}}


class As(nn.Module):
    """A batch in another precision."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(self.dtype)


def make_smooth(dtype: torch.dtype) -> Staged:
    """Return stages of sigmoids, as review and local learning need them, always from the same weights."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first = nn.Sequential(As(dtype), nn.Linear(6, 24), nn.Sigmoid())
        second = nn.Sequential(nn.Linear(24, 12), nn.Sigmoid())
        return Staged(fc1=first, fc2=second, out=nn.Linear(12, 10)).to(dtype)


def agree(bench: Bench) -> bool:
    """Every algorithm, stacked and captured beside looped: the largest difference of anything in the states after a round of at most 30 steps."""
    rng = np.random.default_rng(1)
    y = np.arange(300) % 10
    data = niidpart.from_arrays((rng.normal(size=(300, 6)) + y[:, None] / 4).astype(np.float32), y)
    split = niidpart.make(data, "quantity", n_parties=5, seed=3, beta=2.0, val=0.2, test=0.2)
    heads = {
        engine: [f"{engine} {precision}, at most {bound:g}" for precision, bound in of.items()]
        for engine, of in BOUNDS.items()
    }
    width = print_head("algorithm", *heads["stacked"], "agrees", *heads["graph"])

    def train(name: str, dtype: torch.dtype, engine: str) -> fltrain.interface.State:
        algorithm = build(name, **OPTIONS.get(name, {}))
        settings = {"engine": engine, "device": bench.device, "rounds": 1, "batch_size": 16}
        settings |= {"local_epochs": 1} | algorithm.settings
        model = make_smooth(dtype)
        return fltrain.run(split, data, algorithm=algorithm, model=model, **settings).state

    def measure(name: str) -> list[Any]:
        found: dict[str, list[float]] = {engine: [] for engine in BOUNDS}
        agrees = True
        for precision in ("float64", "float32"):
            dtype = getattr(torch, precision)
            looped = train(name, dtype, "looped")
            for engine, bounds in BOUNDS.items():
                apart = find_difference(looped, train(name, dtype, engine))
                found[engine].append(apart)
                agrees &= apart <= LOOSE.get(name, bounds)[precision]
        return [*found["stacked"], "yes" if agrees else "NO", *found["graph"]]

    good = True
    for name in bench.algorithms:
        cells = bench.print_row(name, lambda name=name: measure(name), width)
        good &= cells is not None and (cells == [] or "yes" in cells)
    return good


def find_difference(a: fltrain.interface.State, b: fltrain.interface.State) -> float:
    """Return the largest difference of two states."""
    largest = 0.0
    for part in ("models", "buffers", "server", "parties"):
        mine, its = tree.flatten(getattr(a, part)), tree.flatten(getattr(b, part))
        for path, leaf in mine.items():
            if leaf.numel():
                apart = (leaf.double() - its[path].double()).abs().max()
                largest = max(largest, float(apart))
    return largest
