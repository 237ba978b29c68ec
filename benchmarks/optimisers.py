"""What optimisers, clipping and schedules cost beside plain SGD with momentum: CPU seconds of local training, the sides in turn.

    python benchmarks/optimisers.py [--models cnn,hidden200] [--engines looped,stacked] [--rounds 3] [--repeats 5]

A round: 2,000 images of 1 x 28 x 28 bytes among 10 parties, batch 64, one local epoch, no evaluation in between. All sides train in one process of one
thread, a run of each in turn, so that what else the machine does falls on all of them; the first round of a run is left out. Seconds are of the
processor and not of the clock. The ratio is that of the medians, and the range that of the ratios within a turn.
"""

import argparse
import statistics
import time
from typing import Any

import numpy as np
import torch

import fltrain
import niidpart

SIDES: dict[str, dict[str, Any]] = {
    "sgd, momentum 0.9": {},
    "clip-norm": {"clip_norm": 10.0},
    "clip-value": {"clip_value": 0.1},
    "nesterov": {"nesterov": True},
    "adam": {"optimizer": "adam", "lr": 1e-3},
    "adamw": {"optimizer": "adamw", "lr": 1e-3, "weight_decay": 0.01},
    "adam, kept": {"optimizer": "adam", "lr": 1e-3, "keep_optimizer": True},
    "cosine over steps": {"lr_schedule": "cosine", "lr_over": "steps"},
    "label smoothing": {"label_smoothing": 0.1},
}


def make_data(n: int) -> niidpart.Data:
    """Random images of 10 classes."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (n, 28, 28), np.uint8)
    y = rng.integers(0, 10, n)
    return niidpart.from_arrays(x, y, x[:100], y[:100])


def time_rounds(
    split: niidpart.FederatedSplit, data: niidpart.Data, rounds: int, **options: Any
) -> float:
    """Return the CPU seconds of a round: the median of all but the first, which prepares."""
    marks = []

    def mark(event: fltrain.Progress) -> None:
        is_first = isinstance(event, fltrain.Announcement)
        if is_first or (isinstance(event, fltrain.JobDone) and event.job == event.jobs):
            marks.append(time.process_time())

    options = {"local_epochs": 1, **options}
    fltrain.run(
        split,
        data,
        rounds=rounds + 1,
        eval_every=rounds + 1,
        device="cpu",
        threads=1,
        progress=mark,
        **options,
    )
    seconds = np.diff(marks)[1:]
    return float(np.median(seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", default="cnn,hidden200")
    parser.add_argument("--engines", default="looped")
    parser.add_argument("--examples", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    data = make_data(asked.examples)
    split = niidpart.make(data, "homo", n_parties=10)
    print(f"torch {torch.__version__}, {asked.repeats} turns of {asked.rounds} rounds\n")
    print("| model | engine | side | CPU seconds a round | times sgd | range |")
    print("| --- | --- | --- | --- | --- | --- |")
    for model in asked.models.split(","):
        for engine in asked.engines.split(","):
            taken: dict[str, list[float]] = {side: [] for side in SIDES}
            for _ in range(asked.repeats):
                for side, options in SIDES.items():
                    taken[side].append(
                        time_rounds(
                            split, data, asked.rounds, model=model, engine=engine, **options
                        )
                    )
            base = taken["sgd, momentum 0.9"]
            for side, seconds in taken.items():
                ratio = statistics.median(seconds) / statistics.median(base)
                each = [a / b for a, b in zip(seconds, base, strict=True)]
                print(
                    f"| {model} | {engine} | {side} | {statistics.median(seconds):.4f} | {ratio:.2f} "
                    f"| {min(each):.2f} to {max(each):.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
