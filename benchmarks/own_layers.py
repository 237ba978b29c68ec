"""Algorithms whose parties keep layers beside FedAvg: CPU seconds of a round, the sides in turns.

    python benchmarks/own_layers.py [--algorithms fedper,fedbn] [--engines looped,native] [--models cnn,lenet5-bn] [--examples 600] [--rounds 4] [--repeats 5] [--evaluate]

A round: ten parties with so many random images of 1 x 28 x 28 bytes each, batches of 64, one local epoch, SGD with momentum. Sides train in one
process of one thread (native and processes: one worker) and take turns; the first round of a run, which prepares, is left out. Seconds are of the
processor, workers' included, the least of the turns. Rounds are not evaluated unless asked for: a party's model with its own layers is a model more to
score, which is work of the protocol and no bookkeeping.
"""

import argparse
import os
import random
import time
from functools import partial

from optimisers import make_data
from process_tree import cpu_seconds

import fltrain
import niidpart

N_PARTIES = 10


def time_round(
    split: niidpart.FederatedSplit,
    data: niidpart.Data,
    rounds: int,
    evaluate: bool,
    **options: object,
) -> float:
    """Return the CPU seconds of a round, of this process and its workers."""
    marks = []
    # the time of the family has steps of 10 ms, and is asked for where there are workers alone
    has_workers = options["engine"] == "processes"
    read_clock = partial(cpu_seconds, os.getpid()) if has_workers else time.process_time

    def mark(event: fltrain.Progress) -> None:
        if isinstance(event, fltrain.RoundDone):
            marks.append(read_clock())

    fltrain.run(
        split,
        data,
        rounds=rounds + 2,
        eval_every=1 if evaluate else rounds + 2,
        local_epochs=1,
        device="cpu",
        threads=1,
        progress=mark,
        **options,
    )
    return (marks[rounds] - marks[0]) / rounds  # the last round is evaluated in any case


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--algorithms", default="fedper,lg-fedavg,fedbabu,fedbn")
    parser.add_argument("--engines", default="looped,processes,native,stacked")
    parser.add_argument("--models", default="cnn,lenet5-bn")
    parser.add_argument("--examples", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--evaluate", action="store_true")
    asked = parser.parse_args()
    data = make_data(N_PARTIES * asked.examples)
    split = niidpart.make(
        data, "homo", n_parties=N_PARTIES, test=0.05
    )  # fedbabu asks for test parts
    names = ["fedavg", *asked.algorithms.split(",")]
    print("| model | engine | algorithm | CPU ms a round | times FedAvg |")
    print("| --- | --- | --- | --- | --- |")
    for model in asked.models.split(","):
        for engine in asked.engines.split(","):
            workers = {"workers": 1} if engine in ("native", "processes") else {}
            how = {"model": model, "engine": engine, **workers}
            taken: dict[str, list[float]] = {name: [] for name in names}
            for _ in range(asked.repeats):
                for name in random.sample(names, len(names)):
                    seconds = time_round(
                        split, data, asked.rounds, asked.evaluate, algorithm=name, **how
                    )
                    taken[name].append(seconds)
            least = {name: min(seconds) for name, seconds in taken.items()}
            for name in names:
                ratio = f"{least[name] / least['fedavg']:.2f}"
                print(
                    f"| {model} | {engine} | `{name}` | {1e3 * least[name]:.1f} | {ratio} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
