"""What `--drift` costs: CPU seconds of a round, bytes of its line in metrics.jsonl, without it, of whole models, of layers.

    python benchmarks/drift.py [--parties 100] [--engines native,looped] [--models cnn,resnet20] [--rounds 3] [--repeats 3]

A round: 64 random images of 1 x 28 x 28 bytes at each party, batch 64, one local epoch, evaluated on 100 images. All sides train in one process of one
thread, a run of each in turn; the first round of a run is left out. Seconds are of the processor. "held" is what the parties moved, until the end of
the round.
"""

import argparse
import json
import statistics
import time

import numpy as np

import fltrain
import niidpart

SIDES = ("none", "whole", "layers")


def make_data(n: int) -> niidpart.Data:
    """Random images of 10 classes."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (n, 28, 28), np.uint8)
    y = rng.integers(0, 10, n)
    return niidpart.from_arrays(x, y, x[:100], y[:100])


def time_rounds(
    split: niidpart.FederatedSplit, data: niidpart.Data, drift: str, rounds: int, **options: str
) -> tuple[float, int]:
    """Return the CPU seconds of a round, the median of all but the first, and its line's bytes."""
    marks = []

    def mark(event: fltrain.Progress) -> None:
        if isinstance(event, fltrain.RoundDone):
            marks.append(time.process_time())

    run = fltrain.run(
        split,
        data,
        rounds=rounds + 1,
        local_epochs=1,
        device="cpu",
        threads=1,
        drift=drift,
        progress=mark,
        **options,
    )
    return float(np.median(np.diff(marks))), len(json.dumps(run.history[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", default="cnn")
    parser.add_argument("--engines", default="native,looped")
    parser.add_argument("--parties", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    data = make_data(64 * asked.parties)
    split = niidpart.make(data, "homo", n_parties=asked.parties)
    print("| model | engine | drift | CPU seconds a round | bytes of a line | held, MB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for model in asked.models.split(","):
        whole = fltrain.models.create(model, (1, 28, 28), 10, seed=0)
        weights = sum(one.nbytes for one in whole.parameters())
        for engine in asked.engines.split(","):
            how = {"model": model, "engine": engine}
            found: dict[str, list[tuple[float, int]]] = {side: [] for side in SIDES}
            for _ in range(asked.repeats):
                for side in SIDES:
                    found[side].append(time_rounds(split, data, side, asked.rounds, **how))
            for side, of_side in found.items():
                seconds = statistics.median(one for one, _ in of_side)
                held = 0 if side == "none" else weights * asked.parties / 1e6
                size = of_side[0][1]
                print(f"| {model} | {engine} | {side} | {seconds:.3f} | {size} | {held:.1f} |")


if __name__ == "__main__":
    main()
