"""What a job costs besides its arithmetic: CPU seconds of a round as 60,000 examples are dealt to more and more parties.

    python benchmarks/many_parties.py [--parties 10,100,1000,6000] [--beside CLONE] [--engine native] [--turns 3]

60,000 random images of 28 x 28 bytes, dealt evenly; the papers' CNN, FedAvg, batch 64, one local epoch. Each measurement is a fresh process, and a
clone of another commit (--beside) takes turns with this one. A process trains four rounds; its number is the median of the last three, from the last job of
a round to that of the next, of all threads.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent.parent
EXAMPLES = 60_000


def time_round(n_parties: int, engine: str) -> float:
    """Return the CPU seconds of a round, of the fltrain that is on the path."""
    import fltrain
    import niidpart

    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (EXAMPLES, 28, 28), np.uint8)
    y = rng.integers(0, 10, EXAMPLES)
    data = niidpart.from_arrays(x, y, x[:100], y[:100])
    marks = []

    def mark(event: object) -> None:
        if isinstance(event, fltrain.JobDone) and event.job == event.jobs:
            marks.append(time.process_time())

    fltrain.run(
        niidpart.make(data, "homo", n_parties=n_parties),
        data,
        model="cnn",
        engine=engine,
        rounds=4,
        local_epochs=1,
        eval_every=4,
        device="cpu",
        progress=mark,
    )
    return statistics.median(np.diff(marks).tolist())


def ask_child(clone: Path, n_parties: int, engine: str) -> float:
    """Return what a process of its own measures with that clone."""
    path = os.pathsep.join([str(clone), str(clone / "cli")])
    done = subprocess.run(
        [sys.executable, __file__, "--one", str(n_parties), "--engine", engine],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parties", default="10,100,1000,6000")
    parser.add_argument("--engine", default="native")
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(time_round(asked.one, asked.engine))
        return
    sides = {"now": HERE} | ({"before": asked.beside.resolve()} if asked.beside else {})
    print("| parties | " + " | ".join(sides) + " |")
    print("| --- |" + " --- |" * len(sides))
    for n_parties in map(int, asked.parties.split(",")):
        taken: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(asked.turns):
            for side, clone in sides.items():
                taken[side].append(ask_child(clone, n_parties, asked.engine))
        cells = []
        for seconds in taken.values():
            middle = statistics.median(seconds)
            cells.append(f"{middle:.2f} ({min(seconds):.2f} to {max(seconds):.2f})")
        print(f"| {n_parties:,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
