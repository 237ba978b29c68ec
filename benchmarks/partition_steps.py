"""What partitioning, looking and comparing cost at sizes where a loop over rows would show.

    python benchmarks/partition_steps.py [--before FOLDER] [--repeats 5] [--cases atleast,diff]

Each measurement is a fresh process in which libraries have one thread (that of niidpart, where there
are two processors, counts): it imports niidpart, makes a small split so that everything lazy is
there, makes labels, and then measures the call alone: CPU seconds (of the process: the machine may
be busy), wall seconds, and the peak of resident memory of the process.
--before names a checkout of an earlier version; the two take turns, and the digests that they give
have to be equal.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
MANY = {"n": 10_000_000, "k": 100, "p": 10_000}
CASES: dict[str, tuple[str, dict[str, Any]]] = {  # name -> (what, how)
    "small": ("60,000 / 10 / 10, dir", {"n": 60_000, "k": 10, "p": 10}),
    "middle": ("1 M / 100 / 1,000, dir", {"n": 1_000_000, "k": 100, "p": 1_000}),
    "large": ("10 M / 100 / 10,000, dir", MANY),
    "atleast": ("1 M / 100 / 100,000, dir", {"n": 1_000_000, "k": 100, "p": 100_000}),
    "hierarchical": (
        "1 M / 100 / 1,000, hierarchical",
        {"n": 1_000_000, "k": 100, "p": 1_000, "strategy": "hierarchical"},
    ),
    "hypergeometric": (
        "1 M / 100 / 1,000, hypergeometric",
        {"n": 1_000_000, "k": 100, "p": 1_000, "strategy": "hypergeometric"},
    ),
    "group": (
        "10 M / 100 / 1,000, group of 20,000",
        {"n": 10_000_000, "k": 100, "p": 1_000, "strategy": "group"},
    ),
    "show": ("read and skew, 1 M / 10 / 100,000", {"n": 1_000_000, "k": 10, "p": 100_000}),
    "diff": ("diff of two equal files, 10 M / 100 / 10,000", MANY),
}


def build_call(name: str, n: int, k: int, p: int, strategy: str = "dir") -> Callable[[], Any]:
    """Return what is measured."""
    import numpy as np

    import niidpart

    rng = np.random.default_rng(0)
    labels = rng.integers(0, k, n)
    labels[:k] = np.arange(k)  # every class is there
    options: dict[str, Any] = {}
    if strategy == "dir":
        options = {"beta": 0.5, "min_size": 10}
    if strategy == "group":
        options = {"groups": rng.integers(0, 20_000, n)}
    niidpart.make(np.arange(100) % 10, "dir", n_parties=2, min_size=0)

    def make() -> Any:
        return niidpart.make(labels, strategy, n_parties=p, seed=0, **options)

    if name not in ("show", "diff"):
        return make
    folder = Path(tempfile.mkdtemp(prefix="niidpart-benchmark-"))
    os.environ["XDG_STATE_HOME"] = str(folder)
    a, b = (niidpart.write(made, folder / file) for made in [make()] for file in ("a.h5", "b.h5"))
    if name == "show":
        return lambda: niidpart.read(a).skew
    return lambda: niidpart.diff(a, b)


def describe(outcome: Any) -> tuple[str, str]:
    """Return what has to be equal before and after, and what is said of it."""
    if hasattr(outcome, "digest"):
        n_rows = sum(part.n for part in outcome.parts.values())
        return outcome.digest, f"{n_rows:,} rows dealt"
    if hasattr(outcome, "same"):
        return str(outcome.same), f"same: {outcome.same}"
    return json.dumps(outcome.to_json(), sort_keys=True), f"{len(outcome.measures)} measures"


def measure_here(name: str) -> dict[str, Any]:
    """Measure in this process."""
    call = build_call(name, **CASES[name][1])
    Path("/proc/self/clear_refs").write_text("5")  # the highest begins again
    wall, cpu = time.perf_counter(), time.process_time()
    outcome = call()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1e3
    result, said = describe(outcome)
    return {"cpu": cpu, "wall": wall, "megabytes": peak, "result": result, "said": said}


def measure(name: str, tree: Path) -> dict[str, Any]:
    """Measure in a fresh process that imports niidpart from `tree`."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = os.environ | threads | {"PYTHONPATH": str(tree)}
    command = [sys.executable, str(Path(__file__).resolve()), "--here", name]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, cwd=tree
    )
    return json.loads(done.stdout.splitlines()[-1])


def compare(names: list[str], trees: dict[str, Path], repeats: int) -> None:
    print("| | tree | CPU seconds, median (range) | wall | MB | outcome |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in names:
        found: dict[str, list[dict[str, Any]]] = {tree: [] for tree in trees}
        for _ in range(repeats):
            for tree, folder in trees.items():
                found[tree].append(measure(name, folder))
        for tree, measured in found.items():
            print(format_row(name, tree, measured), flush=True)
        results = {one["result"] for measured in found.values() for one in measured}
        if len(results) > 1:
            raise SystemExit(f"{name}: the results differ")


def format_row(name: str, tree: str, measured: list[dict[str, Any]]) -> str:
    cpu = [one["cpu"] for one in measured]
    wall = statistics.median(one["wall"] for one in measured)
    megabytes = statistics.median(one["megabytes"] for one in measured)
    middle = f"{statistics.median(cpu):.3g} ({min(cpu):.3g} to {max(cpu):.3g})"
    said = measured[0]["said"]
    return f"| {CASES[name][0]} | {tree} | {middle} | {wall:.3g} | {megabytes:.0f} | {said} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", type=Path, metavar="FOLDER")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--here", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        print(json.dumps(measure_here(arguments.here)))
        return
    trees = {"before": arguments.before.resolve()} if arguments.before else {}
    compare(arguments.cases.split(","), trees | {"now": HERE}, arguments.repeats)


if __name__ == "__main__":
    main()
