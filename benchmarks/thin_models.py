"""Compiled code beside torch's engine and a plain loop, model by model: CPU seconds, in turns.

    python benchmarks/thin_models.py [--models cnn,lenet5-bn] [--side 32] [--repeats 3]

A round: 2,560 random images (3 channels where --side is 32, else 1) of one party, batches of 64,
one local epoch, SGD with momentum, one thread. The plain loop is what one would write with torch.
The sides take turns in one process; seconds are of the processor, the least of the turns.
"""

import argparse
import time

import numpy as np
import torch
from optimisers import time_rounds
from torch.nn import functional as F

import niidpart
from fltrain.environment import describe
from fltrain.models import create

N_EXAMPLES, BATCH = 2560, 64
LR, MOMENTUM = 0.01, 0.9


def make_data(side: int) -> niidpart.Data:
    """Return random images of 10 classes."""
    rng = np.random.default_rng(0)
    shape = (side, side, 3) if side == 32 else (side, side)
    x = rng.integers(0, 256, (N_EXAMPLES, *shape), np.uint8)
    y = rng.integers(0, 10, N_EXAMPLES)
    return niidpart.from_arrays(x, y, x[:100], y[:100])


def time_plain(model: str, side: int) -> float:
    """Return the CPU seconds of an epoch of a plain loop, the second one."""
    channels = 3 if side == 32 else 1
    module = create(model, (channels, side, side), 10, 0).train()
    optimizer = torch.optim.SGD(module.parameters(), lr=LR, momentum=MOMENTUM)
    x = torch.randint(0, 256, (N_EXAMPLES, channels, side, side), dtype=torch.uint8)
    y = torch.randint(0, 10, (N_EXAMPLES,))
    taken = 0.0
    for _ in range(2):
        began = time.process_time()
        for rows in torch.randperm(N_EXAMPLES).split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(module(x[rows].float().div_(255)), y[rows]).backward()
            optimizer.step()
        taken = time.process_time() - began
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", default="cnn,lenet5-bn")
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    data = make_data(asked.side)
    split = niidpart.make(data, "homo", n_parties=1)
    print(describe(torch.device("cpu")))
    print("| model | plain ms a step | looped | native | plain / native | looped / native |")
    print("| --- | --- | --- | --- | --- | --- |")
    for model in asked.models.split(","):
        taken: dict[str, list[float]] = {"plain": [], "looped": [], "native": []}
        for _ in range(asked.repeats):
            taken["plain"].append(time_plain(model, asked.side))
            for engine in ("looped", "native"):
                settings = {"batch_size": BATCH, "lr": LR, "momentum": MOMENTUM}
                if engine == "native":
                    settings["workers"] = 1
                rounds = time_rounds(split, data, 2, model=model, engine=engine, **settings)
                taken[engine].append(rounds)
        steps = N_EXAMPLES / BATCH
        plain, looped, native = (min(seconds) / steps * 1e3 for seconds in taken.values())
        print(
            f"| {model} | {plain:.2f} | {looped:.2f} | {native:.2f} "
            f"| {plain / native:.1f} | {looped / native:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
