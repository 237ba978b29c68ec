"""What a round costs as parties, local epochs or the model grow: seconds and memory, each point in a fresh process.

    python benchmarks/scaling.py [--engines looped,processes,native] [--svg FILE] [--rounds 3] [--quick] [--limit 120]

60,000 random images of 28 x 28 bytes in 10 classes, dealt evenly; the papers' CNN, batch 64, one local epoch, evaluation on 10,000 images and a
checkpoint each round. Three tables: parties 1, 10, 100, 1,000 and 10,000 (cohorts of 100) with FedAvg and SCAFFOLD, the total of the data fixed, and
FedAvg with all of 10,000 (native alone) and with 100,000 parties of ten images (cohorts of 1,000; SCAFFOLD would keep 17.8 GB); local epochs 1, 2, 5,
10 with the last engine; models. looped has one thread, processes and native have as many workers as there are cores. Seconds are those of the last
round: training until the last job is done, and the rest of it (mean, evaluation, checkpoint). Memory is the most that the process and its workers
were seen with, pages that they share counted once (PSS); beside it stands what the run had announced. --svg draws the first two tables, log-log.
--quick is a small check. Linux alone.
"""

import argparse
import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from process_tree import cpu_seconds, family, memory

import fltrain
import niidpart
from fltrain.environment import describe

SECONDS = ("train", "train_cpu", "rest", "rest_cpu")
COHORT = 100  # parties of a round where there are 10,000
MANY, MANY_COHORT, MANY_EXAMPLES = 100_000, 1000, 1_000_000
TESTS = 10_000
IMAGE, COLOUR = (28, 28), (32, 32, 3)
HEAD = [
    "seconds a round, training",
    "CPU seconds of it",
    "mean, evaluation and checkpoint, seconds",
    "CPU seconds",
    "peak MB",
    "MB announced",
]


class Point(NamedTuple):
    """One measurement. n: examples in all; cohort: parties a round, 0 for all."""

    engine: str
    algorithm: str = "fedavg"
    parties: int = 10
    cohort: int = 0
    epochs: int = 1
    model: str = "cnn"
    shape: tuple[int, ...] = IMAGE
    n: int = 60_000


def tables(engines: list[str], quick: bool) -> dict[str, dict[str, list[Point]]]:
    """{what grows: {line: its points}}."""
    n = 200 if quick else 60_000
    grown = {
        f"{algorithm}, {engine}": list_parties(engine, algorithm, n, quick)
        for algorithm in ("fedavg", "scaffold")
        for engine in engines
    }
    epochs = {
        f"fedavg, {engine}": [
            Point(engine, epochs=e, n=n) for e in ((1, 2) if quick else (1, 2, 5, 10))
        ]
        for engine in engines[-1:]
    }
    names = ["cnn"] if quick else ["linear", "mlp", "cnn"]
    small = [(name, IMAGE, n) for name in names] + ([] if quick else [("vgg9", COLOUR, 1000)])
    models = {
        f"fedavg, {engine}": [
            Point(engine, model=name, shape=shape, n=size) for name, shape, size in small
        ]
        for engine in engines
    }
    return {"parties": grown, "epochs": epochs, "model": models}


def list_parties(engine: str, algorithm: str, n: int, quick: bool) -> list[Point]:
    """The points of one line of the table of parties."""
    counts = [1, 10] if quick else [1, 10, 100, 1000]
    if quick and algorithm == "scaffold":
        counts = [10]
    if (engine, algorithm, quick) == ("native", "fedavg", False):
        counts.append(10_000)
    points = [Point(engine, algorithm, parties, n=n) for parties in counts]
    if not quick:
        points.append(Point(engine, algorithm, 10_000, COHORT, n=n))
        if algorithm == "fedavg":
            points.append(Point(engine, algorithm, MANY, MANY_COHORT, n=MANY_EXAMPLES))
    return points


def child(point: Point, rounds: int) -> dict[str, Any]:
    """The measurement itself, in this process."""
    rng = np.random.default_rng(0)
    sizes = [point.n, min(max(point.n // 6, 10), TESTS)]
    x, x_test = (rng.integers(0, 256, (size, *point.shape), np.uint8) for size in sizes)
    y, y_test = (np.arange(size) % 10 for size in sizes)
    data = niidpart.from_arrays(x, y, x_test, y_test)
    split = niidpart.make(data, "homo", n_parties=point.parties)
    told, trained, ended = "", [], [clocks()]

    def progress(p: fltrain.Progress) -> None:
        nonlocal told
        if isinstance(p, fltrain.RoundDone):
            ended.append(clocks())
        elif isinstance(p, fltrain.JobDone) and p.job == p.jobs:
            trained.append(clocks())
        elif isinstance(p, fltrain.Announcement):
            told, ended[0] = p.text, clocks()

    with tempfile.TemporaryDirectory() as scratch:
        run = fltrain.run(
            split,
            data,
            algorithm=point.algorithm,
            model=point.model,
            rounds=rounds,
            local_epochs=point.epochs,
            fraction=point.cohort / point.parties if point.cohort else 1.0,
            engine=point.engine,
            device="cpu",
            out=Path(scratch, "run"),
            progress=progress,
        )
    announced = re.search(r"about ([\d.]+) GB", told)
    parameters = sum(p.numel() for p in run.task.module.parameters())
    seconds = dict(
        zip(SECONDS, [*(trained[-1] - ended[-2]), *(ended[-1] - trained[-1])], strict=True)
    )
    return seconds | {
        "announced": 1000 * float(announced[1]) if announced else None,
        "told": told,
        "parameters": parameters,
    }


def clocks() -> np.ndarray:
    """[wall seconds, CPU seconds of this process and its workers]."""
    return np.array([time.perf_counter(), cpu_seconds(os.getpid())])


@functools.cache
def measure(point: Point, rounds: int, limit: float) -> dict[str, Any]:
    """What a fresh process measured, with the most memory that it was seen with; {"error": reason} where it failed or was stopped.

    A point of several tables is measured once.
    """
    command = [sys.executable, __file__, "--child", json.dumps(point), "--rounds", str(rounds)]
    with subprocess.Popen(
        command,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        peak, began = 0, time.monotonic()
        while process.poll() is None:
            peak = max(peak, memory(process.pid))
            if time.monotonic() - began > limit:
                for pid in family(process.pid):
                    with contextlib.suppress(ProcessLookupError):  # ended meanwhile
                        os.kill(pid, signal.SIGKILL)
                return {"error": f"stopped after {limit:.0f} s"}
            time.sleep(0.1)
        out, err = process.communicate()
    if process.returncode:
        return {
            "error": (err.strip().splitlines() or ["no reason given"])[-1][:120].replace("|", "/")
        }
    return json.loads(out.splitlines()[-1]) | {"megabytes": peak / 1e6}


def label(what: str, point: Point) -> str:
    if what == "model":
        return f"{point.model}, {point.n:,} of {' x '.join(map(str, point.shape))}"
    value = getattr(point, what)
    return f"{value:,}, cohorts of {point.cohort:,}" if point.cohort else f"{value:,}"


def report(
    what: str, lines: dict[str, list[Point]], arguments: argparse.Namespace
) -> Iterator[tuple[str, Point, dict[str, Any]]]:
    """Prints a table as it is measured, and gives what was."""
    print(f"\n| run | {what} | {' | '.join(HEAD)} |\n|{' --- |' * (2 + len(HEAD))}")
    for line, points in lines.items():
        for point in points:
            got = measure(point, arguments.rounds, arguments.limit)
            yield line, point, got
            numbers = (
                []
                if "error" in got
                else [
                    *(f"{got[k]:.3g}" for k in SECONDS),
                    f"{got['megabytes']:.0f}",
                    f"{got['announced'] or 0:.0f}",
                ]
            )
            cells = numbers or [got["error"], *[""] * (len(HEAD) - 1)]
            weight = (
                f", {got['parameters']:,} parameters"
                if what == "model" and "parameters" in got
                else ""
            )
            print(f"| {line} | {label(what, point)}{weight} | {' | '.join(cells)} |", flush=True)


def draw(found: dict[str, list[tuple[str, Point, dict[str, Any]]]], path: Path) -> None:
    """CPU seconds of training and memory against parties, and the seconds against local epochs, on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3), layout="constrained")
    panels = [
        ("parties", "train_cpu", "CPU seconds of training"),
        ("parties", "megabytes", "peak MB"),
        ("epochs", "train_cpu", "CPU seconds of training"),
    ]
    for i, (what, number, y) in enumerate(panels):
        ax = figure.add_subplot(1, 3, i + 1)
        for line in dict.fromkeys(name for name, _, _ in found[what]):
            # the cohorts of 100 are another curve: a hundredth of the parties train
            dots = [
                (getattr(p, what), got[number])
                for name, p, got in found[what]
                if name == line and number in got and not p.cohort
            ]
            if dots:
                ax.loglog(*zip(*dots, strict=True), marker="o", label=line)
        ax.set(xlabel="local epochs" if what == "epochs" else what, ylabel=y)
    if figure.axes[0].lines:
        figure.axes[0].legend(frameon=False, fontsize=7)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--engines",
        type=lambda text: text.split(","),
        default=["looped", "processes", "native"],
        help="Default: looped,processes,native.",
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="Rounds of each point; the last one counts."
    )
    parser.add_argument("--svg", type=Path, metavar="FILE")
    parser.add_argument("--quick", action="store_true", help="Little data, few points.")
    parser.add_argument(
        "--limit", type=float, default=120.0, metavar="SECONDS", help="When a point is stopped."
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        fields = json.loads(arguments.child)
        print(json.dumps(child(Point(*fields[:6], tuple(fields[6]), fields[7]), arguments.rounds)))
        return
    here = describe(torch.device("cpu"))
    print(
        f"{here['cpu']}, {os.cpu_count()} cores; Python {here['python']}, torch {here['torch']}, numpy {here['numpy']}; {arguments.rounds} rounds"
    )
    found = {
        what: list(report(what, lines, arguments))
        for what, lines in tables(arguments.engines, arguments.quick).items()
    }
    if arguments.svg:
        draw(found, arguments.svg)


if __name__ == "__main__":
    main()
