"""Algorithms of other directions than the gradient, compiled beside torch: CPU seconds, in turns.

    python benchmarks/declared_directions.py [--algorithms moon,pfedme] [--epochs 1] [--repeats 3]

A round: 2,560 random images of 28 x 28 bytes of one party, batches of 64, plain SGD, one thread;
the papers' CNN, or the model that an algorithm is made for. Of a run of three rounds the first,
which prepares, and in which MOON has no model of its own yet, is left out. The sides take turns in
one process; seconds are of the processor, the least of the turns.
"""

import argparse

import torch
from optimisers import time_rounds
from thin_models import BATCH, N_EXAMPLES, make_data

import niidpart
from fltrain.algorithms import build
from fltrain.environment import describe

ALGORITHMS = ("fedavg", "fedmoc", "moon", "fedrl", "pfedme", "fednaca")
ENGINES = ("looped", "native")
SIDE = 28


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--algorithms", default=",".join(ALGORITHMS))
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    data = make_data(SIDE)
    split = niidpart.make(data, "homo", n_parties=1)
    steps = asked.epochs * N_EXAMPLES / BATCH
    print(describe(torch.device("cpu")))
    print("| algorithm | model | looped: ms a step | native | looped / native |")
    print("| --- | --- | --- | --- | --- |")
    for name in asked.algorithms.split(","):
        algorithm = build(name)
        model = algorithm.model or "cnn"
        options = {"lr": 0.001, "momentum": 0.0, "batch_size": BATCH, "local_epochs": asked.epochs}
        taken: dict[str, list[float]] = {engine: [] for engine in ENGINES}
        for _ in range(asked.repeats):
            for engine in ENGINES:
                more = {"workers": 1} if engine == "native" else {}
                seconds = time_rounds(
                    split,
                    data,
                    2,
                    algorithm=algorithm,
                    model=model,
                    engine=engine,
                    **options,
                    **more,
                )
                taken[engine].append(seconds)
        looped, native = (min(seconds) / steps * 1e3 for seconds in taken.values())
        line = f"| `{name}` | {model} | {looped:.2f} | {native:.2f} | {looped / native:.1f} |"
        print(line, flush=True)


if __name__ == "__main__":
    main()
