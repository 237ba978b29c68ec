"""What compiled code brings by how dense a step is: CPU milliseconds of a step of 64 examples, by torch and by `native`, one thread each.

    python benchmarks/density.py [MODEL ...]

"operations a byte" is what `--engine auto` looks at: operations of a step for each byte of activations and weights. A step's time is the difference
between a run of many steps and one of two, the least of three, in seconds of the processor.
"""

import itertools
import sys
import time
from typing import NamedTuple

import numpy as np
from torch import nn

import fltrain
import niidpart
from fltrain.runs.objective import Objective
from fltrain.runs.requests import resolve_request
from fltrain.runs.training import prepare

FEW, TURNS = 2, 3
GREY, COLOUR = (28, 28), (32, 32, 3)


class Case(NamedTuple):
    """A model, the shape of its examples, and the steps that are timed."""

    model: str | nn.Module
    shape: tuple[int, ...]
    steps: int


def chain_linear(*sizes: int) -> list[nn.Module]:
    """Return linear layers from size to size, with ReLU between them."""
    layers: list[nn.Module] = [nn.Flatten()]
    for n_in, n_out in itertools.pairwise(sizes):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return layers[:-1]


def chain_convolutions(*widths: int) -> list[nn.Module]:
    """Return 3 x 3 convolutions of so many channels with ReLU behind them; 0 is a pooling."""
    layers: list[nn.Module] = []
    before = 3
    for width in widths:
        if width:
            layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU()]
            before = width
        else:
            layers.append(nn.MaxPool2d(2))
    return layers


VGG9 = [*chain_convolutions(32, 64, 0, 128, 128, 0, 256, 256, 0), *chain_linear(4096, 512, 512, 10)]
CASES = {
    "linear": Case("linear", GREY, 2000),
    "mlp": Case("mlp", GREY, 2000),
    "cnn": Case("cnn", GREY, 300),
    "hidden200": Case("hidden200", GREY, 1000),
    "cnn of colour images": Case("cnn", COLOUR, 200),
    "twonn": Case("twonn", GREY, 400),
    "3 convolutions of 32 channels": Case(
        nn.Sequential(*chain_convolutions(32, 0, 32, 0, 32, 0), *chain_linear(512, 10)), COLOUR, 60
    ),
    "2 layers of 1,024": Case(nn.Sequential(*chain_linear(784, 1024, 1024, 10)), GREY, 100),
    "2 layers of 4,096": Case(nn.Sequential(*chain_linear(784, 4096, 4096, 10)), GREY, 15),
    "3 convolutions of 64 channels": Case(
        nn.Sequential(*chain_convolutions(64, 0, 64, 0, 64, 0), *chain_linear(1024, 10)), COLOUR, 30
    ),
    "naca-cnn": Case("naca-cnn", GREY, 15),
    "VGG-9 without dropout": Case(nn.Sequential(*VGG9), COLOUR, 10),
    "resnet18-gn": Case("resnet18-gn", COLOUR, 4),
}


def measure(case: Case) -> tuple[float, float, float]:
    """Return the operations a byte, and the seconds of a step of `looped` and of `native`."""
    rng = np.random.default_rng(0)
    x, x_test = (rng.integers(0, 256, (n, *case.shape), np.uint8) for n in (256, 20))
    data = niidpart.from_arrays(x, np.arange(256) % 10, x_test, np.arange(20) % 10)
    split = niidpart.make(data, "homo", n_parties=1)
    how = {"rounds": 1, "device": "cpu", "threads": 1, "batch_size": 64}

    def take(engine: str, steps: int) -> float:
        workers = 1 if engine == "native" else None
        began = time.process_time()
        fltrain.run(
            split,
            data,
            model=case.model,
            engine=engine,
            workers=workers,
            local_steps=steps,
            **how,
        )
        return time.process_time() - began

    least = {}
    for engine in ("looped", "native"):
        take(engine, FEW)  # what is done once: imports, compiling
        differences = [take(engine, case.steps) - take(engine, FEW) for _ in range(TURNS)]
        least[engine] = min(differences) / (case.steps - FEW)
    asked = resolve_request(
        split,
        algorithm="fedavg",
        model=case.model,
        preset=None,
        data_root=None,
        settings=how | {"local_steps": FEW},
        objective=Objective(),
    )
    facts = prepare([asked], data, n_ranks=1).choice.facts
    return facts.density, least["looped"], least["native"]


def main() -> None:
    print("| model | operations a byte | `looped` | `native` | |")
    print("| --- | --- | --- | --- | --- |")
    for name in sys.argv[1:] or CASES:
        density, looped, native = measure(CASES[name])
        milliseconds = f"{1e3 * looped:.3g} | {1e3 * native:.3g}"
        print(
            f"| {name} | {density:.0f} | {milliseconds} | {looped / native:.1f} times |", flush=True
        )


if __name__ == "__main__":
    main()
