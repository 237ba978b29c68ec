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

from .bench import ENGINES, Bench, print_head

# Several models within two rounds, and no rounding at random.
OPTIONS: dict[str, dict[str, Any]] = {"fedcd": {"milestones": (1,), "bits": 32}}
BOUNDS = {"float64": 1e-12, "float32": 1e-6}


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
    bounds = (f"{name}, at most {bound:g}" for name, bound in BOUNDS.items())
    width = print_head("algorithm", *bounds, "agrees")

    def train(name: str, dtype: torch.dtype, engine: str) -> fltrain.interface.State:
        algorithm = build(name, **OPTIONS.get(name, {}))
        settings = {"engine": engine, "device": bench.device, "rounds": 1, "batch_size": 16}
        settings |= {"local_epochs": 1} | algorithm.settings
        model = make_smooth(dtype)
        return fltrain.run(split, data, algorithm=algorithm, model=model, **settings).state

    def measure(name: str) -> list[Any]:
        found = []
        for precision in BOUNDS:
            dtype = getattr(torch, precision)
            looped, *others = (train(name, dtype, engine) for engine in ENGINES)
            found.append(max(find_difference(looped, other) for other in others))
        agrees = all(value <= bound for value, bound in zip(found, BOUNDS.values(), strict=True))
        return [*found, "yes" if agrees else "NO"]

    good = True
    for name in bench.algorithms:
        cells = bench.print_row(name, lambda name=name: measure(name), width)
        good &= cells is not None and cells[-1:] in ([], ["yes"])
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
